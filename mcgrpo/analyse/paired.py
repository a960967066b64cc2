"""Weighted sums of cells, formed per seed and problem: the estimates of summary.csv and of claims."""

from collections.abc import Iterable, Mapping

import numpy as np

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.crossed import Part, Weighted, contrast, share
from mcgrpo.analyse.scored import Scores
from mcgrpo.analyse.stats import Estimate

Weights = Mapping[CellKey, float]
"""The weight of each cell in a sum; all cells are of one setting if their seeds are paired."""


def mean(key: CellKey, scores: Scores) -> Estimate:
    """The mean of a cell over its seeds and problems."""
    seeds = scores.get(key, {})
    if not seeds:
        return Estimate()
    ((problems, weighted),) = part({key: 1.0}, scores, seeds).items()
    return share(weighted.values) if problems else contrast([{problems: weighted}])


def difference(key: CellKey, other: CellKey | None, scores: Scores) -> Estimate:
    """The difference of two cells over the seeds that both have; empty if they share none."""
    seeds = shared_seeds([key, other], scores)
    return contrast([part({key: 1.0, other: -1.0}, scores, seeds)]) if seeds else Estimate()


def shared_seeds(keys: Iterable[CellKey | None], scores: Scores) -> list[int]:
    """The seeds that all of these cells have, in ascending order."""
    return sorted(set.intersection(*(set(scores.get(key, ())) for key in keys)))


def part(weights: Weights, scores: Scores, seeds: Iterable[int]) -> Part:
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
