"""Means and paired differences over seeds, with Student's t intervals: pure functions, no files.

For measures that have no problems (training seconds, rewards); those that have are `mcgrpo.bootstrap`'s. Runs are few
(3 to 8 seeds), so intervals are t intervals of a mean; a method and its baseline are compared over the seeds that both
have, since they share the seed's model and data order.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.95

Verdict = Literal["above", "below", "indistinguishable", "unknown"]


class Estimate(NamedTuple):
    """A mean over `n` seeds with its interval: `low` and `high` are None at one seed, `mean` too at none."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


def half_width(sem, n, level: float = LEVEL):
    """Half the width of the t interval of a mean, from its standard error over `n` values.

    Both may be arrays of one shape; where `n` is below 2 the answer is NaN.
    """
    return stats.t.ppf((1 + level) / 2, np.asarray(n) - 1) * sem


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Mean of one value per seed, with its t interval (zero-width where all values are equal).

    Raises:
        ValueError: for no values at all, or one that is not finite, naming its place.
    """
    if not len(values):
        raise ValueError("no values to take a mean of")
    for place, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"value {place} is {value}: a mean needs finite numbers")
    mean, n = float(np.mean(values)), len(values)
    if n == 1:
        return Estimate(mean, None, None, 1)
    half = 0.0 if min(values) == max(values) else float(half_width(stats.sem(values), n, level))
    return Estimate(mean, mean - half, mean + half, n)


def paired_difference(values: Mapping[int, float], baseline: Mapping[int, float], level: float = LEVEL) -> Estimate:
    """Mean over shared seeds of `values[seed] - baseline[seed]`, with its paired t interval.

    Without a shared seed it is `Estimate(None, None, None, 0)`.

    Raises:
        ValueError: for a value that is not finite, naming its seed.
    """
    shared = sorted(values.keys() & baseline.keys())
    if not shared:
        return Estimate(None, None, None, 0)
    for seed in shared:
        for value in (values[seed], baseline[seed]):
            if not math.isfinite(value):
                raise ValueError(f"seed {seed}: {value} is not a finite number")
    return mean_interval([values[seed] - baseline[seed] for seed in shared], level)


def verdict(low: float | None, high: float | None) -> Verdict:
    """Where an interval lies relative to zero; "unknown" where there is none (None or NaN)."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "unknown"
    if low > 0:
        return "above"
    return "below" if high < 0 else "indistinguishable"
