"""Train one contender for a few steps and time each step."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from transformers.trainer_callback import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer


@dataclass(frozen=True)
class Contender:
    """A trainer with its configuration."""

    label: str
    trainer: type[GRPOTrainer]
    config: type[GRPOConfig]
    estimator: str | None = None


CONTENDERS = {
    "trl": Contender("TRL, mean, G", GRPOTrainer, GRPOConfig),
    "mean": Contender("mcgrpo, mean, G", MCGRPOTrainer, MCGRPOConfig, "mean-std"),
    "mc": Contender("mcgrpo, median, G+1", MCGRPOTrainer, MCGRPOConfig, "median-mad"),
}


@dataclass(frozen=True)
class Task:
    """What all contenders share: the model's folder, the prompts in their order, and TRL's settings."""

    model: Path
    prompts: Dataset
    settings: dict[str, Any]
    prompts_per_step: int
    completion_length: int


class Clock(TrainerCallback):
    """The seconds of each optimizer step; TRL draws and scores the rollouts within the step."""

    def __init__(self, now: Callable[[], float]):
        self.now, self.start, self.seconds = now, 0.0, list[float]()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start."""
        self.start = self.now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop."""
        self.seconds.append(self.now() - self.start)


def train(
    task: Task, name: str, num_generations: int, reward: Any, steps: int, now: Callable[[], float], **settings: Any
) -> tuple[list[float], list[dict[str, float]]]:
    """Train a fresh model; returns the seconds and the logged metrics of each step, which has one micro-batch.

    Args:
        now: the clock, in seconds.
        settings: more arguments of TRL.
    """
    contender, clock = CONTENDERS[name], Clock(now)
    own = {"estimator": contender.estimator} if contender.estimator else {}
    fixed = {
        "num_generations": num_generations,
        "per_device_train_batch_size": task.prompts_per_step * num_generations,
        "max_completion_length": task.completion_length,
        "generation_kwargs": {"min_new_tokens": task.completion_length},
        "max_steps": steps,
        "shuffle_dataset": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    with tempfile.TemporaryDirectory() as output:
        args = contender.config(output_dir=output, **{**task.settings, **own, **fixed, **settings})
        trainer = contender.trainer(
            model=AutoModelForCausalLM.from_pretrained(task.model, dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(task.model, padding_side="left"),
            reward_funcs=reward,
            args=args,
            train_dataset=task.prompts,
            callbacks=[clock],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.seconds, [row for row in trainer.state.log_history if "reward" in row]
