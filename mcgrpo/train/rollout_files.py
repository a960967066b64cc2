"""What a training drew, as files: `groups.jsonl`, the numbers of every group, and `rollouts.jsonl`, a few to be read.

Rows are of `mcgrpo.records.Group` and `Rollout`. Their `step` is that of `metrics.jsonl`: the first optimizer step that
a generation batch is used for.
"""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import gather_object
from transformers import TrainerCallback

from mcgrpo.estimators.statistics import median
from mcgrpo.records import Group, Rollout
from mcgrpo.train.oracle import oracle_means
from mcgrpo.train.rollout_tables import RolloutTables

if TYPE_CHECKING:
    from mcgrpo.trainer.trainer import Drawn, MCGRPOTrainer

GROUPS, ROLLOUTS = "groups.jsonl", "rollouts.jsonl"


class RolloutFiles(TrainerCallback):
    """Appends to both files of a training.

    Args:
        trainer: whose rollouts they are.
        folder: of the files.
        tables: what is to be read; None for no `rollouts.jsonl`.

    `oracle_seconds` are what the oracle has taken so far.
    """

    def __init__(self, trainer: "MCGRPOTrainer", folder: Path, tables: RolloutTables | None = None):
        self.trainer, self.folder, self.tables = trainer, folder, tables
        self.wanted: set[int] = set()
        self.step = self.groups = 0
        self.oracle_seconds = 0.0
        trainer.observers.append(self)
        trainer.add_callback(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Choose the steps whose rollouts are to be read."""
        if self.tables:
            self.wanted = set(spread(generating_steps(args, state.max_steps), self.tables.steps))

    def __call__(self, drawn: "Drawn") -> None:
        """Append the rows of a generation batch; several of them may go into one optimizer step."""
        step = self.trainer.state.global_step + 1
        is_first = step != self.step
        self.step, self.groups = step, 0 if is_first else self.groups
        self._append(GROUPS, groups_of(step, self.groups, drawn))
        self.groups += len(drawn.rewards)
        if is_first and step in self.wanted:
            self._append(ROLLOUTS, self._rollouts(step, drawn))

    def _rollouts(self, step: int, drawn: "Drawn") -> list[Rollout]:
        count = min(self.tables.prompts, len(drawn.rewards))
        inputs, texts = first_rows(self.trainer, drawn, count * drawn.rewards.size(1))
        begun = time.perf_counter()
        means = oracle_of(self.trainer, inputs, self.tables.oracle)
        self.oracle_seconds += time.perf_counter() - begun if self.tables.oracle else 0.0
        return rollouts_of(step, drawn, texts, means)

    def _append(self, name: str, rows: Iterable[Any]) -> None:
        if self.trainer.is_world_process_zero():
            with (self.folder / name).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(row), separators=(",", ":")) + "\n" for row in rows)


def generating_steps(args: Any, max_steps: int) -> list[int]:
    """The optimizer steps, from 1, that rollouts are drawn for; TRL draws every so many micro-batches."""
    every = args.steps_per_generation * args.num_iterations
    batches = range(0, max_steps * args.gradient_accumulation_steps, every)
    return sorted({batch // args.gradient_accumulation_steps + 1 for batch in batches})


def spread(steps: list[int], count: int) -> list[int]:
    """So many of the steps, evenly: the first, the last and those between; all if there are no more."""
    if len(steps) <= count:
        return steps
    if count == 1:
        return steps[:1]
    return [steps[round(place * (len(steps) - 1) / (count - 1))] for place in range(count)]


def groups_of(step: int, start: int, drawn: "Drawn") -> Iterator[Group]:
    """The rows of a batch, its first group numbered `start`."""
    columns = (drawn.rewards, drawn.advantages, drawn.keep.int(), drawn.lengths)
    for place, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        rewards, advantages, kept, lengths = values
        yield Group(step, start + place, [*map(number, rewards)], [*map(number, advantages)], kept, lengths)


def number(value: float) -> float | None:
    """A single-precision number in as few digits as tell it from all others; None for NaN."""
    return None if value != value else float(f"{value:.9g}")


def rollouts_of(step: int, drawn: "Drawn", texts: list[tuple[str, str]], means: list[float | None]) -> list[Rollout]:
    """The rows of the first rollouts of a batch: those of which there are texts (`first_rows`) and oracles."""
    size = drawn.rewards.size(1)
    groups = [
        column[: len(texts) // size]
        for column in (drawn.rewards, drawn.advantages, drawn.keep, pivots(drawn), drawn.lengths)
    ]
    rows = zip(*(group.flatten().tolist() for group in groups), strict=True)
    return [
        Rollout(
            step=step,
            prompt=prompt,
            sample=place % size,
            completion=completion,
            reward=number(reward),
            advantage=number(advantage),
            kept=kept,
            pivot=pivot,
            flipped=is_flipped(reward, advantage, kept, mean),
            length=length,
            oracle=mean,
        )
        for place, ((prompt, completion), mean, (reward, advantage, kept, pivot, length)) in enumerate(
            zip(texts, means, rows, strict=True)
        )
    ]


def first_rows(
    trainer: "MCGRPOTrainer", drawn: "Drawn", count: int
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """The first rows drawn by all processes: what they were drawn for, and (prompt, completion) as texts.

    A conversation is shown as the text that the model was given for it.
    """
    decode = trainer.processing_class.batch_decode
    given = [row["prompt"] for row in drawn.inputs[:count]]
    if not isinstance(given[0], str):
        given = decode(drawn.rollouts.prompt_ids[:count])
    completions = decode(drawn.rollouts.completion_ids[:count], skip_special_tokens=True)
    found = gather_object(list(zip(drawn.inputs[:count], zip(given, completions, strict=True), strict=True)))[:count]
    return [row for row, _ in found], [texts for _, texts in found]


def oracle_of(trainer: "MCGRPOTrainer", inputs: list[dict[str, Any]], size: int) -> list[float | None]:
    """The mean reward of each row's prompt under the oracle; None without one."""
    if not size or trainer.use_vllm:
        return [None] * len(inputs)
    keys = [json.dumps(row["prompt"]) for row in inputs]
    prompts = dict(zip(keys, inputs, strict=True))
    means = dict(zip(prompts, oracle_means(trainer, list(prompts.values()), size), strict=True))
    return [means[key] for key in keys]


def pivots(drawn: "Drawn") -> torch.Tensor:
    """Rows left out as the median of their group, with an advantage of exactly 0; (groups, drawn) booleans."""
    return ~drawn.keep & (drawn.advantages == 0) & (drawn.rewards == median(drawn.rewards))


def is_flipped(reward: float, advantage: float, kept: bool, oracle: float | None) -> bool | None:
    """Whether an advantage has another sign than the reward has under the oracle's mean; None if that has none.

    By the convention `zeros` of `mcgrpo.analyse.sign_flips`: 0 is a sign of its own. Rewards of two levels never flip
    under the other one. As there, only rollouts that reach the update count: one left out is not flipped.
    """
    if oracle is None or reward != reward:
        return None
    return kept and (advantage > 0) - (advantage < 0) != (reward > oracle) - (reward < oracle)
