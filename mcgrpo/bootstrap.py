"""Intervals of a mean over seeds and problems: a crossed bootstrap for the shape, variance components for the width.

Every seed answers the same problems, so a resample draws seeds and, independently, problems, both with replacement,
and takes the mean of what they cross in (the pigeonhole bootstrap: Owen 2007, Annals of Applied Statistics 1(2)). With
3 to 5 seeds its percentiles are far too narrow, as any percentile bootstrap's are (Hesterberg 2015, The American
Statistician 69(4): a factor sqrt((n-1)/n), and z in place of t). Here they say only how lopsided the interval is, where
there is enough to say it (see `SPARSE`). Its width is that of a t interval whose variance is the sum of the components
of seeds, problems and the two together, none below zero, with degrees of freedom after Satterthwaite (1946, Biometrics
Bulletin 2(6)).

In simulations of 3 and 5 seeds it covers the truth in 92 to 98 of 100 studies, and in up to 99 where neither seeds nor
problems differ in truth (`tests/test_bootstrap.py`); with 2 seeds that differ much, in about 90. With one seed it is an
interval over problems: of the seeds' noise it knows nothing. Where all values are equal (no problem is solved by any
seed) it has no width: the values then say nothing of how they might have varied. Pure functions, no files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mcgrpo.stats import LEVEL, Estimate, half_width

RESAMPLES = 4000
SEED = 20260213
SEEDS, PROBLEMS = 0, 1
"""Axes of a matrix of values; each has resamples of its own."""
SPARSE = 10
"""Differences that are not 0, below which their interval is symmetric."""
PRECISION = 2.0**30
"""Values are resampled as multiples of its inverse: sums are then exact, in whichever order a matrix product takes
them, and a cell's interval does not depend on the cells that it is computed beside."""


@dataclass(frozen=True)
class Sample:
    """`values`: seeds x problems. `resampled`: seeds x RESAMPLES, each seed's mean over each resample of problems."""

    values: np.ndarray
    resampled: np.ndarray
    paired: bool = False

    def take(self, rows: Sequence[int]) -> "Sample":
        """The seeds at these rows."""
        return Sample(self.values[rows], self.resampled[rows], self.paired)

    def __sub__(self, other: "Sample") -> "Sample":
        """Paired differences: the same seeds and problems in both, in the same order."""
        return Sample(self.values - other.values, self.resampled - other.resampled, paired=True)


def sample(values: np.ndarray) -> Sample:
    """Resample the problems of a matrix, seeds x problems; matrices with as many problems get the same resamples."""
    problems = values.shape[1]
    whole = np.rint(values * PRECISION)
    return Sample(values, whole @ _draws(PROBLEMS, problems) / (problems * PRECISION))


@cache
def _draws(axis: int, n: int) -> np.ndarray:
    """How often each of the n along an axis is drawn in each resample: n x RESAMPLES."""
    generator = np.random.Generator(np.random.PCG64([SEED, axis, n]))
    return np.ascontiguousarray(generator.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).T, dtype=float)


def interval(of: Sample, level: float = LEVEL) -> Estimate:
    """The mean over seeds and problems with its interval; without one for a single value. `n` is that of the seeds."""
    seeds = len(of.values)
    mean = float(of.values.mean())
    if of.values.size == 1:
        return Estimate(mean, None, None, seeds)
    if np.ptp(of.values) * PRECISION < 1:
        return Estimate(mean, mean, mean, seeds)
    variance, freedom = variance_of_mean(of.values)
    width = 2 * half_width(variance**0.5, freedom + 1, level)
    below = _share_below(of, mean, level)
    return Estimate(mean, float(mean - width * below), float(mean + width * (1 - below)), seeds)


def _share_below(of: Sample, mean: float, level: float) -> float:
    """The share of the percentile interval of all resamples that lies below the mean; a half if it has no width.

    A half too for differences nearly all of which are 0: the percentiles of two wins and no loss lie above 0 to the
    last, and would call two answers of a thousand an effect.
    """
    seeds = len(of.values)
    if of.paired and np.count_nonzero(of.values) < SPARSE:
        return 0.5
    resamples = (of.resampled * _draws(SEEDS, seeds)).sum(axis=0) / seeds
    low, high = np.quantile(resamples, [(1 - level) / 2, (1 + level) / 2])
    return (mean - low) / (high - low) if high > low else 0.5


def variance_of_mean(values: np.ndarray) -> tuple[float, float]:
    """The variance of the mean of a matrix, seeds x problems (not all equal), and its degrees of freedom.

    For value = seed effect + problem effect + rest, all random. The variance of seed means over the number of seeds,
    and likewise for problems, each holds the rest's share of the variance, which is therefore taken off once; where
    that is more than there was, seeds (or problems) add nothing. One seed or one problem: the variance of the other.
    """
    counts = np.array(values.shape)
    means = values.mean(axis=1), values.mean(axis=0)
    of_seeds, of_problems = (mean.var(ddof=1) / n if n > 1 else 0.0 for mean, n in zip(means, counts, strict=True))
    if 1 in counts:
        return of_seeds + of_problems, counts.max() - 1
    rest = values - means[0][:, None] - means[1] + values.mean()
    freedom = np.array([*(counts - 1), np.prod(counts - 1)])
    of_rest = (rest**2).sum() / freedom[2] / values.size
    variance = max(of_seeds, of_rest) + max(of_problems, of_rest) - of_rest
    satterthwaite = variance**2 / (np.square([of_seeds, of_problems, of_rest]) / freedom).sum()
    return variance, max(satterthwaite, freedom.min())
