"""What a training drew against what follows from it: advantages, kept rows and metrics, step by step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from mcgrpo.commands.evidence.advantages import Batch, as_batch, differences, drawn
from mcgrpo.files import RecordError, as_record, iter_json_lines
from mcgrpo.records import Group, Rollout, Run
from mcgrpo.study.paths import GROUPS, METRICS, ROLLOUTS
from mcgrpo.study.schedule import Schedule
from mcgrpo.train.rollout_tables import RolloutTables

RELATIVE, ABSOLUTE = 1e-4, 1e-5
"""Of metrics, which are means in single precision."""
MOST = 20
"""Findings of one training that are listed."""


@dataclass
class Recorded:
    """A training's files, read side by side; `findings` are their disagreements.

    Args:
        folder: of the run.
        run: as planned.
        schedule: of its generation batches.
        tables: which of its rollouts should be there as text.
    """

    folder: Path
    run: Run
    schedule: Schedule
    tables: RolloutTables | None
    findings: list[str] = field(default_factory=list)

    def check(self) -> list[str]:
        """Where the groups of a training disagree with its rewards, its metrics and its sampled rollouts.

        Raises:
            RecordError, ValueError: for a line that cannot be read.
        """
        metrics, groups = iter_json_lines(self.folder / METRICS), iter_json_lines(self.folder / GROUPS)
        batches_by_step = groupby(self.schedule.generations(), lambda generation: generation[0])
        texts, generating = self._texts(), []
        following = next(batches_by_step, None)
        for step in range(1, self.schedule.steps + 1):
            row, batches = self._metrics_of(step, metrics), []
            if row is not None and following and following[0] == step:
                batches = self._batches(step, [position for _, position in following[1]], groups)
                following = next(batches_by_step, None)
                generating.append(step)
            if row is None or batches is None or len(self.findings) >= MOST:
                return self.findings
            if batches:
                self._compare(step, row, [self._logged(step, position, batch) for position, batch in batches])
            if step in texts:
                self._compare_text(step, texts[step], batches[0][1] if batches else None)
        for name, rest in ((METRICS, metrics), (GROUPS, groups)):
            if next(rest, None):
                self.findings.append(f"{name}: has more than the {self.schedule.steps} steps that are planned")
        if self.tables:
            self._check_steps(list(texts), generating)
        return self.findings

    def _texts(self) -> dict[Any, list[dict[str, Any]]]:
        lines = iter_json_lines(self.folder / ROLLOUTS) if self.tables else ()
        by_step: dict[Any, list[dict[str, Any]]] = {}
        for _, row in lines:
            by_step.setdefault(row.get("step"), []).append(row)
        return by_step

    def _metrics_of(self, step: int, metrics: Iterator[tuple[str, dict[str, Any]]]) -> dict[str, Any] | None:
        _, row = next(metrics, ("", None))
        if row is None:
            self.findings.append(f"{METRICS}: ends before step {step} of {self.schedule.steps}")
        elif row.get("step") != step:
            self.findings.append(f"{METRICS}: step {row.get('step')!r} where {step} should be")
            return None
        infinite = [name for name, value in (row or {}).items() if isinstance(value, float) and math.isinf(value)]
        self.findings += [f"{METRICS}: step {step}: {name} is infinite" for name in infinite]
        return row

    def _batches(
        self, step: int, positions: list[int], groups: Iterator[tuple[str, dict[str, Any]]]
    ) -> list[tuple[int, Batch]] | None:
        """The batches of a step, each with its position; None, and a finding, where they are missing."""
        size, batches = self.schedule.groups, []
        for number, position in enumerate(positions):
            rows = [as_record(Group, row, where) for where, row in islice(groups, size)]
            in_order = all((row.step, row.group) == (step, number * size + at) for at, row in enumerate(rows))
            if len(rows) < size or not in_order:
                self.findings.append(
                    f"{GROUPS}: step {step}: its groups from {number * size} on are not there, in order"
                )
                return None
            try:
                batch = as_batch(rows)
            except ValueError as error:
                raise RecordError(f"{GROUPS}: step {step}: {error}") from None
            if (wanted := drawn(self.run) or batch.rewards.size(1)) != batch.rewards.size(1):
                self.findings.append(f"{GROUPS}: step {step}: groups of {batch.rewards.size(1)} rollouts, not {wanted}")
                return None
            batches.append((position, batch))
        return batches

    def _logged(self, step: int, position: int, batch: Batch) -> dict[str, float]:
        try:
            findings, logged = differences(batch, self.run, step, position)
        except ValueError as error:
            raise RecordError(f"{GROUPS}: step {step}: {error}") from None
        self.findings += [f"{GROUPS}: step {step}: {odd}" for odd in findings]
        return logged

    def _compare(self, step: int, row: dict[str, Any], logged: list[dict[str, float]]) -> None:
        """Compare the metrics of a step: each is the mean over its batches that have a number."""
        for name in logged[0]:
            values = [each[name] for each in logged if not math.isnan(each[name])]
            wanted = sum(values) / len(values) if values else None
            if name not in row:
                self.findings.append(f"{METRICS}: step {step}: no {name}")
            elif not _close(row[name], wanted):
                self.findings.append(f"{METRICS}: step {step}: {name} is {row[name]!r}, by {GROUPS} it is {wanted!r}")

    def _compare_text(self, step: int, lines: list[dict[str, Any]], batch: Batch | None) -> None:
        """Check that the rollouts recorded as text are the first of their batch."""
        count = min(self.tables.prompts, len(batch.rewards)) if batch else 0
        columns = (batch.rewards, batch.advantages, batch.kept, batch.lengths) if batch else ()
        wanted = list(zip(*(column[:count].flatten().tolist() for column in columns), strict=True))
        if len(lines) != len(wanted):
            self.findings.append(f"{ROLLOUTS}: step {step}: {len(lines)} rollouts, not {len(wanted)}")
            return
        for position, (line, each) in enumerate(zip(lines, wanted, strict=True)):
            row = as_record(Rollout, line, f"{ROLLOUTS}: step {step}")
            recorded = (math.nan if row.reward is None else row.reward, row.advantage, row.kept, row.length)
            if repr([*map(float, recorded)]) != repr([*_digits(each)]):
                self.findings.append(f"{ROLLOUTS}: step {step}: rollout {position} is not that of {GROUPS}")

    def _check_steps(self, steps: list[Any], generating: list[int]) -> None:
        wanted = min(self.tables.steps, len(generating))
        if len(steps) != wanted or steps[:1] != generating[:1] or not {*steps} <= {*generating}:
            self.findings.append(f"{ROLLOUTS}: rollouts of the steps {steps}, not of {wanted} from {generating[0]} on")


def _digits(values: tuple[float, ...]) -> Iterator[float]:
    """Numbers as `mcgrpo.train.rollout_files` writes them."""
    return (float(f"{value:.9g}") for value in values)


def _close(value: Any, wanted: float | None) -> bool:
    if wanted is None or value is None:
        return wanted is value
    return isinstance(value, int | float) and math.isclose(value, wanted, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
