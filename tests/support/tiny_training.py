"""A tiny random model, and trainers on it that keep what every update is given."""

import re
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path

import torch
from accelerate.utils import imports
from datasets import Dataset
from device import ON_GPU
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer
from mcgrpo.data.toy.models import build
from mcgrpo.train.released import ReleasedConfig, ReleasedTrainer

PROMPTS = 12
SETTINGS = {"use_cpu": True, "bf16": False, "per_device_train_batch_size": 8, "num_generations": 4}
SPEC = {"architecture": "qwen3", "hidden_size": 64, "layers": 1, "heads": 2, "intermediate_size": 64, "seed": 1}
_HOME = tempfile.TemporaryDirectory()
# Accelerate looks up dozens of times whether packages are installed: a tenth of a training of three steps.
imports._is_package_available = cache(imports._is_package_available)


@cache
def dataset():
    questions = [f"Sam has {number} cards." for number in range(2, 2 + PROMPTS)]
    return Dataset.from_dict({"prompt": questions, "answer": [str(n) for n in range(PROMPTS)]})


def digits_reward(completions, **kwargs):
    """Discrete, often tied, often different within a group."""
    return [float(sum(map(int, re.findall(r"\d", completion))) % 3) for completion in completions]


class Spy:
    """Mixed into a trainer: keeps what every update is given, and its loss."""

    def __init__(self, *args, **kwargs):
        self.batches, self.losses = [], []
        super().__init__(*args, **kwargs)

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        self.batches.append({name: value.clone() for name, value in inputs.items() if torch.is_tensor(value)})
        self.losses.append(loss.detach().clone())
        return loss


class TRL(Spy, GRPOTrainer):
    config = GRPOConfig


class Ours(Spy, MCGRPOTrainer):
    config = MCGRPOConfig


class Released(Spy, ReleasedTrainer):
    config = ReleasedConfig


@cache
def model_folder():
    """The model as a folder: with beta > 0, TRL loads its reference model from there."""
    folder = Path(_HOME.name) / "tiny"
    build(SPEC, folder)
    return folder


@cache
def loaded():
    """The model and its tokenizer, to be copied: to load them takes as long as half a step."""
    model = AutoModelForCausalLM.from_pretrained(model_folder(), dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(model_folder(), padding_side="left")


def trainer_of(kind, tmp_path, reward=digits_reward, data=None, wrap=lambda model: model, peft_config=None, **settings):
    """A trainer of that kind, not yet trained; on `dataset()` unless it is given other `data`.

    It trains what `wrap` makes of the model.
    """
    model, tokenizer = deepcopy(loaded())
    defaults = {
        "use_cpu": not ON_GPU,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "logging_steps": 1,
        "seed": 3,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_steps": 3,
        "max_completion_length": 8,
        "learning_rate": 1e-2,
        "beta": 0.04,
    }
    args = kind.config(output_dir=str(tmp_path), **{**defaults, **settings})
    data = dataset() if data is None else data
    return kind(
        model=wrap(model),
        reward_funcs=reward,
        args=args,
        train_dataset=data,
        eval_dataset=data.select(range(2)) if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
        peft_config=peft_config,
    )


def trained(kind, tmp_path, reward=digits_reward, **settings):
    """A trainer after three optimizer steps."""
    trainer = trainer_of(kind, tmp_path, reward, **settings)
    trainer.train()
    return trainer


def history(trainer, name):
    return [row[name] for row in trainer.state.log_history if name in row]


def logged(trainer):
    """All that is logged of the steps, but for times."""
    rows = [row for row in trainer.state.log_history if "loss" in row]
    return [{name: row[name] for name in row if "time" not in name and "seconds" not in name} for row in rows]


def weights_of(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def texts_of(trainer, batch, column="completion_ids"):
    """The completion (or, from `prompt_ids`, the prompt) of each row of an update."""
    return trainer.processing_class.batch_decode(batch[column], skip_special_tokens=True)


def same_training(one, other):
    """Whether two trainers were given the same updates, bit for bit, and ended at the same weights."""
    weights = dict(other.model.named_parameters())
    return (
        len(one.losses) == len(other.losses)
        and all(torch.equal(a, b) for a, b in zip(one.losses, other.losses, strict=True))
        and all(
            a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
            for a, b in zip(one.batches, other.batches, strict=True)
        )
        and all(torch.equal(value, weights[name]) for name, value in one.model.named_parameters())
    )
