"""Time the contenders on one case, in turns, so that a busy machine slows them alike."""

import random
import statistics
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.trainer_callback import PrinterCallback

from bench.training.contenders import CONTENDERS, Contender
from mcgrpo.trainer.timing import PHASES


@dataclass(frozen=True)
class Case:
    """What is trained: G, the KL penalty, and the length of completions (None: as long as the model makes them)."""

    num_generations: int
    beta: float = 0.0
    completion_length: int | None = None
    num_iterations: int = 1


@dataclass(frozen=True)
class Task:
    """What all cases share: the model's folder, the prompts, a reward and how often it is earned, TRL settings."""

    model: Path
    prompts: Any
    reward: Any
    settings: dict[str, Any]
    right: float
    prompts_per_step: int = 8

    def with_reward(self, reward: Any) -> "Task":
        """The same, with another reward."""
        return replace(self, reward=reward)


@dataclass(frozen=True)
class Timing:
    """Seconds of a generation batch and of its phases: medians over the `steps` of the fastest round."""

    contender: str
    steps: int
    seconds: float
    phases: dict[str, float]


def trainer_of(task: Task, case: Case, contender: Contender, steps: int, seed: int, output: str) -> Any:
    """A fresh trainer of a contender, from the task's weights."""
    drawn = case.num_generations + contender.extra
    forced = {}
    if case.completion_length is not None:
        length = case.completion_length
        forced = {"max_completion_length": length, "generation_kwargs": {"min_new_tokens": length}}
    settings = {
        **task.settings,
        "num_generations": drawn,
        "per_device_train_batch_size": task.prompts_per_step * drawn,
        "beta": case.beta,
        "num_iterations": case.num_iterations,
        "max_steps": steps * case.num_iterations,
        "seed": seed,
        **forced,
        **dict(contender.settings),
    }
    trainer = contender.trainer(
        model=AutoModelForCausalLM.from_pretrained(task.model, dtype=torch.float32),
        reward_funcs=task.reward,
        args=contender.config(output_dir=output, **settings),
        train_dataset=task.prompts,
        processing_class=AutoTokenizer.from_pretrained(task.model, padding_side="left"),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def measure(task: Task, case: Case, names: list[str], rounds: int, steps: int) -> list[Timing]:
    """Each contender for `steps` generation batches a round, in a new order each round; the first batch warms up.

    A generation batch is an optimizer step, or `num_iterations` of them, whose seconds are added up.
    """
    found: dict[str, list[Timing]] = {name: [] for name in names}
    for number in range(rounds):
        for name in random.Random(number).sample(names, len(names)):
            with tempfile.TemporaryDirectory() as output:
                trainer = trainer_of(task, case, CONTENDERS[name], steps + 1, number, output)
                trainer.train()
            log = [row for row in trainer.state.log_history if "seconds/update" in row]
            batches = []
            for start in range(case.num_iterations, len(log), case.num_iterations):
                batch = log[start : start + case.num_iterations]
                batches.append({phase: sum(row[f"seconds/{phase}"] for row in batch) for phase in PHASES})
            found[name].append(timing(name, batches))
    # As timeit does: whatever else the machine does only adds
    return [min(timings, key=lambda each: each.seconds) for timings in found.values()]


def timing(name: str, batches: list[dict[str, float]]) -> Timing:
    """Medians over generation batches: of the whole and of each phase."""
    phases = {phase: statistics.median(batch[phase] for batch in batches) for phase in PHASES}
    return Timing(name, len(batches), statistics.median(sum(batch.values()) for batch in batches), phases)
