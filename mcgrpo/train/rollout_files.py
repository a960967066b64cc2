"""What a training drew, as files: `groups.jsonl`, the numbers of every group, and `rollouts.jsonl`, some texts to read.

Their rows are `mcgrpo.records.Group` and `Rollout`. `step` is the first optimizer step that a generation batch is used
for, numbered as in `metrics.jsonl`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import gather_object
from transformers import TrainerCallback

from mcgrpo.estimators.statistics import median
from mcgrpo.records import Group, Rollout
from mcgrpo.study.paths import GROUPS, ROLLOUTS
from mcgrpo.study.schedule import Schedule

if TYPE_CHECKING:
    from mcgrpo.trainer.trainer import Drawn, MCGRPOTrainer


class RolloutFiles(TrainerCallback):
    """Appends the rollouts of a training to both files.

    Args:
        trainer: the trainer to observe.
        folder: where the files are.
        tables: which rollouts go into `rollouts.jsonl`, the first `prompts` groups of `steps` optimizer steps, evenly
            spaced from the first to the last that rollouts are drawn for; None for no such file.
    """

    def __init__(self, trainer: "MCGRPOTrainer", folder: Path, tables: dict[str, int] | None = None):
        self.trainer, self.folder, self.tables = trainer, folder, tables
        self.wanted: set[int] = set()
        self.step = self.groups = 0
        trainer.observers.append(self)
        trainer.add_callback(self)

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **kwargs: Any) -> None:
        """Choose the steps whose rollouts go into `rollouts.jsonl`."""
        if self.tables:
            groups = args.generation_batch_size // args.num_generations
            every, epoch = args.steps_per_generation * args.num_iterations, len(train_dataloader)
            planned = Schedule(state.max_steps, groups, args.gradient_accumulation_steps, every, epoch)
            self.wanted = set(spread(sorted({step for step, _ in planned.generations()}), self.tables["steps"]))

    def __call__(self, drawn: "Drawn") -> None:
        """Append the rows of a generation batch; an optimizer step may have several of them."""
        step = self.trainer.state.global_step + 1
        is_first = step != self.step
        self.step, self.groups = step, 0 if is_first else self.groups
        self._append(GROUPS, groups_of(step, self.groups, drawn))
        self.groups += len(drawn.rewards)
        if is_first and step in self.wanted:
            count = min(self.tables["prompts"], len(drawn.rewards)) * drawn.rewards.size(1)
            self._append(ROLLOUTS, rollouts_of(step, drawn, first_texts(self.trainer, drawn, count)))

    def _append(self, name: str, rows: Iterable[Any]) -> None:
        if self.trainer.is_world_process_zero():
            with (self.folder / name).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(vars(row), separators=(",", ":")) + "\n" for row in rows)


def spread(steps: list[int], count: int) -> list[int]:
    """At most `count` of the steps, evenly spaced, with the first and the last."""
    if len(steps) <= count:
        return steps
    if count == 1:
        return steps[:1]
    return [steps[round(index * (len(steps) - 1) / (count - 1))] for index in range(count)]


def groups_of(step: int, start: int, drawn: "Drawn") -> Iterator[Group]:
    """The rows of a batch; `start` is the index of its first group within the step."""
    columns = (drawn.rewards, drawn.advantages, drawn.keep.int(), drawn.lengths)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for index, (rewards, advantages, kept, lengths) in enumerate(rows, start):
        yield Group(step, index, [*map(stored_number, rewards)], [*map(stored_number, advantages)], kept, lengths)


def stored_number(value: float) -> float | None:
    """A single-precision number in the digits that identify it; None for NaN."""
    return None if value != value else float(f"{value:.9g}")


def rollouts_of(step: int, drawn: "Drawn", texts: list[tuple[str, str]]) -> Iterator[Rollout]:
    """The rows of the first rollouts of a batch, one for each of `texts` (see `first_texts`)."""
    columns = (drawn.rewards, drawn.advantages, drawn.keep, pivots(drawn), drawn.lengths)
    rows = zip(texts, *(column.flatten().tolist() for column in columns), strict=False)
    for index, ((prompt, completion), reward, advantage, kept, pivot, length) in enumerate(rows):
        yield Rollout(
            step=step,
            prompt=prompt,
            sample=index % drawn.rewards.size(1),
            completion=completion,
            reward=stored_number(reward),
            advantage=stored_number(advantage),
            kept=kept,
            pivot=pivot,
            length=length,
        )


def first_texts(trainer: "MCGRPOTrainer", drawn: "Drawn", count: int) -> list[tuple[str, str]]:
    """The texts of prompt and completion of the first `count` rows drawn by all processes.

    The text of a conversation is that of its chat template.
    """
    decode = trainer.processing_class.batch_decode
    given = [row["prompt"] for row in drawn.inputs[:count]]
    if not isinstance(given[0], str):
        given = decode(drawn.rollouts.prompt_ids[:count])
    completions = decode(drawn.rollouts.completion_ids[:count], skip_special_tokens=True)
    return gather_object(list(zip(given, completions, strict=True)))[:count]


def pivots(drawn: "Drawn") -> torch.Tensor:
    """Rows dropped as the median of their group, with an advantage of exactly 0; (groups, drawn) booleans."""
    return ~drawn.keep & (drawn.advantages == 0) & (drawn.rewards == median(drawn.rewards))
