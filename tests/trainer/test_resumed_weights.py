"""The weights that a training goes on with, and those that it ends with, against the files of the checkpoint."""

from copy import deepcopy

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tiny_training import Ours, loaded, trainer_of, weights_of
from transformers import TrainerCallback

LORA = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)  # as if it were trained


def one(model):
    return get_peft_model(model, LORA)


def two(model, active="default"):
    wrapped = one(model)
    wrapped.add_adapter("other", LORA)
    wrapped.set_adapter(active)
    return wrapped


MODELS = {
    "full": {},
    "new adapter": {"peft_config": LORA},
    "adapter": {"wrap": one},
    "two adapters": {"wrap": two},
    "second of two": {"wrap": lambda model: two(model, "other")},
}
MATRIX = pytest.mark.parametrize(
    ("kind", "beta"),
    [
        pytest.param(kind, beta, marks=pytest.mark.law if kind == "adapter" else ())
        for kind in MODELS
        for beta in (0.0, 0.04)
    ],
)
STEPS = {"save_strategy": "steps", "save_steps": 1, "max_steps": 3}


def saved_in(checkpoint):
    """The weights in its files by the names of parameters; each sub-folder is an adapter's."""
    found = {}
    for file in checkpoint.rglob("*.safetensors"):
        adapter = "default" if file.parent == checkpoint else file.parent.name
        for name, weight in load_file(file).items():
            found[name.replace(".weight", f".{adapter}.weight") if ".lora_" in name else name] = weight
    return found


def assert_as_saved(weights, checkpoint):
    """All adapters are in the files, `ref` too; of a full model all but the tied weights."""
    saved = saved_in(checkpoint)
    adapters = {name for name in weights if ".lora_" in name}
    assert saved.keys() == (adapters or weights.keys())
    assert all(torch.equal(weights[name], saved[name]) for name in saved)


class FirstStep(TrainerCallback):
    """Keeps the weights at the first step."""

    weights = None

    def on_step_begin(self, args, state, control, model=None, **kwargs):
        self.weights = self.weights or weights_of(model)


@MATRIX
def test_a_training_goes_on_with_the_weights_of_the_checkpoint(kind, beta, tmp_path):
    whole = trainer_of(Ours, tmp_path, **STEPS, **MODELS[kind], beta=beta)
    whole.train()
    again = trainer_of(Ours, tmp_path, **STEPS | {"save_strategy": "no"}, **MODELS[kind], beta=beta)
    again.add_callback(first := FirstStep())
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert_as_saved(first.weights, tmp_path / "checkpoint-2")
    ends = weights_of(again.model)
    assert all(torch.equal(weight, ends[name]) for name, weight in weights_of(whole.model).items())


@MATRIX
def test_a_training_ends_with_the_weights_of_its_best_checkpoint(kind, beta, tmp_path):
    def worse_each_step(completions, trainer_state, **kwargs):
        return [float(len(set(text))) - 100.0 * trainer_state.global_step for text in completions]

    best = {"eval_strategy": "steps", "eval_steps": 1, "load_best_model_at_end": True}
    metric = {"metric_for_best_model": "eval_reward", "greater_is_better": True}
    trainer = trainer_of(Ours, tmp_path, worse_each_step, **STEPS, **best, **metric, **MODELS[kind], beta=beta)
    trainer.train()
    assert trainer.state.best_model_checkpoint == str(tmp_path / "checkpoint-1")
    assert_as_saved(weights_of(trainer.model), tmp_path / "checkpoint-1")
    last = saved_in(tmp_path / "checkpoint-3")
    assert any(not torch.equal(weight, last[name]) for name, weight in saved_in(tmp_path / "checkpoint-1").items())


def test_an_adapter_that_the_checkpoint_lacks_is_named(tmp_path):
    trainer_of(Ours, tmp_path, **STEPS, wrap=one).train()
    with pytest.raises(ValueError, match="checkpoint-2 does not hold the model's adapter 'other'"):
        trainer_of(Ours, tmp_path, wrap=two).train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    weights = load_file(file := tmp_path / "checkpoint-2/adapter_model.safetensors")
    weights.popitem()
    save_file(weights, file)
    with pytest.raises(ValueError, match="checkpoint-2 lacks weights of the adapter 'default'"):
        trainer_of(Ours, tmp_path, wrap=one).train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))


def saved_adapter(model, folder):
    """Loaded as PEFT does by default, for inference."""
    one(deepcopy(loaded()[0])).save_pretrained(folder)
    return PeftModel.from_pretrained(model, folder)


def idle(model, folder):
    """The adapter that is not active would be trained."""
    wrapped = two(model)
    for name, weight in wrapped.named_parameters():
        weight.requires_grad = ".other." in name
    return wrapped


@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize(
    ("wrap", "remedy"),
    [
        (saved_adapter, r"PeftModel.from_pretrained.* is_trainable=True"),
        (idle, "set_adapter"),
        (lambda model, folder: model.requires_grad_(False), r"requires_grad_\(True\)"),
    ],
    ids=["not trainable", "not active", "frozen"],
)
def test_a_model_with_nothing_to_train_is_an_error(wrap, remedy, beta, tmp_path):
    """With gradient checkpointing such a training ends normally, its weights unmoved."""
    with pytest.raises(ValueError, match=rf"nothing would be trained.*{remedy}"):
        trainer_of(Ours, tmp_path, wrap=lambda model: wrap(model, tmp_path), beta=beta)
