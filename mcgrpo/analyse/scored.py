"""Scores and their values on problems, by cell and by seed, checked against the study's plan."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.records import ProblemValues
from mcgrpo.files import as_record, iter_json_lines
from mcgrpo.records import Run
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.sums import check_seal

TOLERANCE = 1e-9
"""The largest difference of a score from the mean of its values."""


class Found(NamedTuple):
    """One seed's score: its `values` on the problems of that hash, if the measure has any."""

    value: float
    n: int
    values: np.ndarray | None = None
    problems: str = ""


Scores = dict[CellKey, dict[int, Found]]
"""By row, then by seed in ascending order."""


def planned_seeds(plan: dict[str, Any]) -> dict[CellKey, set[int]]:
    """The planned seeds of every cell on every benchmark (a `CellKey` without a measure)."""
    seeds: dict[CellKey, set[int]] = defaultdict(set)
    for row in plan["runs"]:
        run = as_record(Run, row, "plan")
        evaluations = list(plan["evaluations"][run.name].items())
        if run.method != UNTRAINED:
            evaluations.append(("train", "train"))
        if flips := plan["flips"].get(run.name):
            evaluations.append((flips["benchmark"], "flips"))
        for benchmark, role in evaluations:
            key = CellKey(run.setting, run.variant, role, benchmark, "", run.num_generations, run.method)
            seeds[key].add(run.seed)
    return seeds


def read_values(path: str | Path) -> Iterator[ProblemValues]:
    """The rows of values.jsonl, one at a time: together they may be many."""
    check_seal(Path(path))
    for where, row in iter_json_lines(path):
        yield as_record(ProblemValues, row, where)


def found_scores(scores: pd.DataFrame, values: Iterable[ProblemValues], planned: dict[CellKey, set[int]]) -> Scores:
    """Scores with their values on problems.

    Raises:
        ValueError: naming the row and the seed, for one that is not planned, stands twice or is not finite; for seeds
            that differ in `n`; for values that are not those of a score, or not on the problems of the cells beside it.
    """
    by_cell: Scores = defaultdict(dict)
    for row in scores.sort_values("seed", kind="stable").itertuples(index=False):
        key = CellKey.of(row)
        if row.seed not in planned.get(key.without_measure, ()):
            raise ValueError(f"{key}: seed {row.seed} is not in the plan")
        if row.seed in by_cell[key]:
            raise ValueError(f"{key}: seed {row.seed} is scored twice")
        if not math.isfinite(row.value):
            raise ValueError(f"{key}: the value of seed {row.seed} is {row.value}, a mean needs finite numbers")
        by_cell[key][row.seed] = Found(row.value, row.n)
    for key, seeds in by_cell.items():
        if len({score.n for score in seeds.values()}) > 1:
            each = ", ".join(f"{score.n} at seed {seed}" for seed, score in seeds.items())
            raise ValueError(f"{key}: seeds differ in n ({each})")
    for row in values:
        _add_values(by_cell, row)
    _check_problems(by_cell)
    return dict(by_cell)


def _check_problems(by_cell: Scores) -> None:
    """Cells that are compared have values on the same problems, or none has any."""
    first: dict[tuple, tuple[CellKey, int, Found]] = {}
    having = (row for row in _rows(by_cell) if row[2].values is not None)
    for row in having:
        first.setdefault(row[0].block, row)
    for key, seed, score in _rows(by_cell):
        if key.block not in first:
            continue
        other, other_seed, known = first[key.block]
        if score.values is None:
            raise ValueError(f"{key}: seed {seed} has no values on problems, but seed {other_seed} of {other} has")
        if (score.problems, score.n) != (known.problems, known.n):
            raise ValueError(f"{key}: seed {seed} is on other problems than seed {other_seed} of {other}")


def _rows(by_cell: Scores) -> list[tuple[CellKey, int, Found]]:
    cells = sorted(by_cell.items(), key=lambda cell: cell[0].order)
    return [(key, seed, score) for key, seeds in cells for seed, score in seeds.items()]


def _add_values(by_cell: Scores, row: ProblemValues) -> None:
    key = CellKey.of(row)
    where = f"{key}: values of seed {row.seed}"
    score = by_cell.get(key, {}).get(row.seed)
    if score is None:
        raise ValueError(f"{where} without a score")
    if score.values is not None:
        raise ValueError(f"{where} stand twice")
    try:
        values = np.array(row.values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} are not all numbers ({error})") from None
    if not np.isfinite(values).all():
        raise ValueError(f"{where} are not all finite")
    if len(values) != score.n or abs(values.mean() - score.value) > TOLERANCE:
        mean = f"{values.mean():g}" if len(values) else "none"
        raise ValueError(f"{where} have n={len(values)}, mean {mean}; their score n={score.n}, value {score.value:g}")
    by_cell[key][row.seed] = score._replace(values=values, problems=row.problems)
