"""The study's runs and what each is measured on, and its scores by cell and by seed, checked against that."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.records import Score
from mcgrpo.files import as_record, iter_json_lines
from mcgrpo.records import Role, Run
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.sums import check_seal


class Found(NamedTuple):
    """One seed's score: its `values` on the problems of that hash, if the measure has any."""

    value: float
    n: int
    values: np.ndarray | None = None
    problems: str = ""


Scores = dict[CellKey, dict[int, Found]]
"""By row, then by seed in ascending order."""
Planned = Mapping[CellKey, set[int]]
"""The planned seeds of every cell on every benchmark: a `CellKey` without a measure."""


def runs_of(plan: Mapping[str, Any]) -> list[Run]:
    """The runs of a plan.json.

    Raises:
        RecordError: for one that is none.
    """
    return [as_record(Run, row, "plan") for row in plan["runs"]]


def measured_on(plan: Mapping[str, Any], run: Run) -> Iterator[tuple[str, Role]]:
    """What a run is measured on: its benchmarks, the rollouts for sign flips, and its training; with their roles."""
    yield from plan["evaluations"][run.name].items()
    if flips := plan["flips"].get(run.name):
        yield flips["benchmark"], "flips"
    if run.method != UNTRAINED:
        yield "train", "train"


def planned_seeds(plan: Mapping[str, Any]) -> dict[CellKey, set[int]]:
    """See `Planned`."""
    seeds: dict[CellKey, set[int]] = defaultdict(set)
    for run in runs_of(plan):
        for benchmark, role in measured_on(plan, run):
            key = CellKey(run.setting, run.variant, role, benchmark, "", run.num_generations, run.method)
            seeds[key].add(run.seed)
    return seeds


def read_scores(path: Path, planned: Planned) -> Scores:
    """The scores of scores.jsonl; errors as in `found_scores`, and for a file that has changed or holds no scores."""
    check_seal(path)
    return found_scores((as_record(Score, row, where) for where, row in iter_json_lines(path)), planned)


def found_scores(rows: Iterable[Score], planned: Planned) -> Scores:
    """Scores by cell and seed.

    Raises:
        ValueError: naming the row and the seed, for one that is not planned, stands twice or is not finite, and where
            seeds, or cells that are compared, are not over the same problems (or as many steps).
    """
    by_cell: Scores = defaultdict(dict)
    for row in rows:
        key = CellKey.of(row)
        if row.seed not in planned.get(key.without_measure, ()):
            raise ValueError(f"{key}: seed {row.seed} is not in the plan")
        if row.seed in by_cell[key]:
            raise ValueError(f"{key}: seed {row.seed} is scored twice")
        values = None if row.values is None else np.array(row.values, dtype=float)
        if not math.isfinite(row.value) or (values is not None and not np.isfinite(values).all()):
            raise ValueError(f"{key}: the value of seed {row.seed} is {row.value}, a mean needs finite numbers")
        by_cell[key][row.seed] = Found(row.value, row.n, values, row.problems)
    scores = {key: dict(sorted(by_cell[key].items())) for key in sorted(by_cell, key=lambda key: key.order)}
    _check_problems(scores)
    return scores


def _check_problems(scores: Scores) -> None:
    known: dict[tuple, tuple[str, str, int]] = {}
    for key, seeds in scores.items():
        for seed, score in seeds.items():
            where, *over = known.setdefault(
                key.block if score.problems else key, (f"seed {seed} of {key}", score.problems, score.n)
            )
            if over != [score.problems, score.n]:
                raise ValueError(f"{key}: seed {seed} is on other problems than {where}")
