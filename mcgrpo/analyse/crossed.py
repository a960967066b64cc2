"""Means over seeds and problems, with standard errors from crossed variance components: pure functions, no files.

Every seed answers the same problems, so a value is the effect of its seed, of its problem, and a rest, all random. The
variance of a mean is the sum of the three, none below zero, with degrees of freedom after Satterthwaite (1946,
Biometrics Bulletin 2(6)). `tests/analyse/test_crossed.py` measures how often the intervals cover the truth: with
two seeds in 89 to 98% of studies, as their noise is hardly known. With one seed an interval is over problems.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mcgrpo.analyse.stats import LEVEL, Estimate, t_quantile

HALF = (1 + LEVEL) / 2
"""The share of a distribution below the upper limit of an interval."""
SAME = 2.0**-30
"""Values that differ by less are equal."""


class Weighted(NamedTuple):
    """Values times their weights, seeds x problems, and what each of them can be at least and at most."""

    values: np.ndarray
    least: float = -math.inf
    most: float = math.inf


Part = Mapping[str, Weighted]
"""Values of the same seeds, by the hash of their problems; "" (and one column) where there are none."""


def share(values: np.ndarray) -> Estimate:
    """The mean of values in [0, 1], seeds x problems; its limits are exact where none is above 0, or below 1."""
    wald = contrast([{"problems": Weighted(values, 0.0, 1.0)}])
    mean, problems = wald.mean, values.shape[1]
    if problems == 1 or wald.standard_error is None:
        # Equal values of one problem say nothing
        return wald if wald.standard_error else replace(wald, standard_error=None)
    if not SAME < mean < 1 - SAME:
        return replace(wald, mean=float(round(mean)), effective_n=problems)
    if np.ptp(values) < SAME:
        return wald
    widening = t_quantile(HALF, problems - 1) / t_quantile(HALF, wald.degrees_of_freedom)
    return replace(wald, effective_n=mean * (1 - mean) * (widening / wald.standard_error) ** 2)


def contrast(parts: Sequence[Part]) -> Estimate:
    """The sum of the means of all matrices.

    Seeds are shared within a part, problems by all matrices of one hash; all else is independent. One seed without
    problems leaves no interval. Values that are all equal say nothing of how they might have varied: see `_equal`.
    """
    matrices = [weighted for part in parts for weighted in part.values()]
    mean = float(sum(each.values.mean() for each in matrices))
    seeds = min(len(each.values) for each in matrices)
    if any(each.values.size == 1 for each in matrices):
        return Estimate(mean, seeds)
    by_problems: dict[str, list[np.ndarray]] = defaultdict(list)
    for part in parts:
        for problems, each in part.items():
            by_problems[problems].append(each.values.mean(axis=0))
    variance, freedom = total_variance(
        [_variance(sum(each.values.mean(axis=1) for each in part.values())) for part in parts],
        [_variance(sum(means)) for problems, means in by_problems.items() if problems],
        [_rest(each.values) for each in matrices],
        [_equal(each) for each in matrices if each.values.shape[1] > 1 and np.ptp(each.values) < SAME],
    )
    return Estimate(mean, seeds, variance**0.5, freedom)


Component = tuple[float, int]
"""A variance of the mean, and its degrees of freedom."""


def _variance(means: np.ndarray) -> Component:
    n = len(means)
    return (float(means.var(ddof=1)) / n, n - 1) if n > 1 else (0.0, 0)


def _rest(values: np.ndarray) -> Component:
    """What neither the seed nor the problem explains."""
    freedom = (values.shape[0] - 1) * (values.shape[1] - 1)
    if not freedom:
        return 0.0, 0
    left = values - values.mean(axis=1)[:, None] - values.mean(axis=0) + values.mean()
    return float((left**2).sum()) / freedom / values.size, freedom


def _equal(weighted: Weighted) -> Component:
    """The variance of the mean of n equal values. Its interval allows for a share u of other values that none of the n
    shows, as far away as a value can be: (1 - u)^n = 1 - HALF (Clopper and Pearson 1934, Biometrika 26(4)).
    """
    n, value = weighted.values.shape[1], weighted.values.flat[0]
    farthest = max(value - weighted.least, weighted.most - value)
    return (farthest * (1 - (1 - HALF) ** (1 / n)) / t_quantile(HALF, n - 1)) ** 2, n - 1


def total_variance(
    of_seeds: Sequence[Component],
    of_problems: Sequence[Component],
    of_rest: Sequence[Component],
    of_equal: Sequence[Component] = (),
) -> Component:
    """The variance of the mean, and its degrees of freedom; a component that is not there has none.

    `of_seeds` (the variance of seed means / the number of seeds) and `of_problems` (the same for problems) each include
    the variance of the rest, which is subtracted once. If one of them is smaller than the rest, it counts as the rest.
    """
    seeds, problems, rest, equal = (
        sum(variance for variance, _ in each) for each in (of_seeds, of_problems, of_rest, of_equal)
    )
    total = max(seeds, rest) + max(problems, rest) - rest + equal
    known = [component for component in (*of_seeds, *of_problems, *of_rest, *of_equal) if component[1]]
    least = min(freedom for _, freedom in known)
    squares = sum(variance**2 / freedom for variance, freedom in known)
    return total, max(total**2 / squares, least) if squares else least
