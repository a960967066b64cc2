"""The seeds that a study plans of each cell; its scores by cell and by seed, and weighted sums of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.crossed import Part, Weighted, contrast, share
from mcgrpo.analyse.records import Score
from mcgrpo.analyse.stats import Estimate
from mcgrpo.files import read_jsonl, write_jsonl
from mcgrpo.records import Plan
from mcgrpo.study.planned import measured_on
from mcgrpo.sums import check_seal, seal


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


def planned_seeds(plan: Plan) -> dict[CellKey, set[int]]:
    """See `Planned`."""
    seeds: dict[CellKey, set[int]] = defaultdict(set)
    for run in plan.runs:
        for benchmark, role in measured_on(plan, run):
            key = CellKey(run.setting, run.variant, role, benchmark, "", run.num_generations, run.method)
            seeds[key].add(run.seed)
    return seeds


def read_scores(path: Path) -> Scores:
    """The scores of scores.jsonl; errors as in `read_rows` and `by_cell`."""
    return by_cell(read_rows(path))


def read_rows(path: Path) -> list[Score]:
    """The rows of scores.jsonl; errors for a file that has changed, has no seal or holds no scores."""
    check_seal(path, needed=True)
    return read_jsonl(path, Score)


def write_scores(path: Path, rows: Iterable[Score]) -> None:
    """Write scores.jsonl, and its seal."""
    write_jsonl(path, rows)
    seal(path)


def by_cell(rows: Iterable[Score]) -> Scores:
    """Scores by cell and seed.

    Raises:
        ValueError: naming cell and seed, where seeds, or cells that are compared, are not over the same problems (or as
            many steps).
    """
    scores: Scores = defaultdict(dict)
    known: dict[tuple, tuple[str, Score]] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        key = CellKey.of(row)
        where, first = known.setdefault(key.block if row.problems else key, (f"seed {row.seed} of {key}", row))
        if (row.problems, row.n) != (first.problems, first.n):
            raise ValueError(f"{key}: seed {row.seed} is on other problems than {where}")
        values = None if row.values is None else np.array(row.values, dtype=float)
        scores[key][row.seed] = Found(row.value, row.n, values, row.problems)
    return dict(scores)


def mean(key: CellKey, scores: Scores) -> Estimate:
    """The mean of a cell over its seeds and problems."""
    seeds = scores.get(key, {})
    if not seeds:
        return Estimate()
    ((problems, weighted),) = weighted_sum({key: 1.0}, scores, seeds).items()
    return share(weighted.values) if problems else contrast([{problems: weighted}])


def shared_seeds(keys: Iterable[CellKey], scores: Scores) -> list[int]:
    """The seeds that all of these cells have, in ascending order."""
    return sorted(set.intersection(*(set(scores.get(key, ())) for key in keys)))


def weighted_sum(weights: Mapping[CellKey, float], scores: Scores, seeds: Iterable[int]) -> Part:
    """The weighted sum of cells at these seeds, by the problems that they are on. Values on problems are in [0, 1]."""
    parts: dict[str, Weighted] = {}
    for key, weight in weights.items():
        cells = [scores[key][seed] for seed in seeds]
        values = np.array([[cell.value] if cell.values is None else cell.values for cell in cells])
        before = parts.get(cells[0].problems, Weighted(np.zeros_like(values), 0.0, 0.0))
        parts[cells[0].problems] = Weighted(
            before.values + weight * values, before.least + min(weight, 0.0), before.most + max(weight, 0.0)
        )
    return parts
