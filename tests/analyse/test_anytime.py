"""The interval that stays valid under looking, by simulation: how often it ever misses the mean."""

import math
from itertools import pairwise

import numpy as np
import pytest

from mcgrpo.analyse.anytime import half_width, limits
from mcgrpo.analyse.stats import t_quantile

STUDIES, SEEDS = 2000, 30


def ever_missed(generator, draw, half):
    """Share of studies in which an interval excludes the mean, 0, after any number of seeds."""
    missed = 0
    for _ in range(STUDIES):
        values = draw(generator, SEEDS)
        missed += any(abs(values[:n].mean()) > half(values[:n]) for n in range(2, SEEDS + 1))
    return missed / STUDIES


def normal(generator, size):
    return generator.normal(size=size)


def skewed(generator, size):
    """One seed in ten collapses."""
    return generator.normal(size=size) - 3 * (generator.random(size) < 0.1) + 0.3


def student(values):
    return t_quantile(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5


@pytest.mark.slow
def test_looking_after_every_seed_errs_in_at_most_five_percent_of_studies():
    assert ever_missed(np.random.default_rng(1), normal, half_width) <= 0.05 + 2 * (0.05 * 0.95 / STUDIES) ** 0.5


@pytest.mark.slow
def test_students_interval_does_not():
    assert ever_missed(np.random.default_rng(1), normal, student) > 0.2


@pytest.mark.slow
def test_nor_does_a_tenth_of_collapsed_seeds_break_it():
    assert ever_missed(np.random.default_rng(2), skewed, half_width) <= 0.06


@pytest.mark.parametrize(("gain", "most"), [(3.0, 6), (1.5, 12)])
def test_a_gain_is_found_within_few_seeds_in_four_of_five_studies(gain, most):
    """Of so many standard deviations between seeds."""
    generator = np.random.default_rng(3)
    found = sum(limits(gain + generator.normal(size=most))[0] > 0 for _ in range(500))
    assert found / 500 > 0.8


def test_the_interval_is_where_the_martingale_is_below_its_bound():
    values = np.random.default_rng(4).normal(size=7)
    n, spread = len(values), 1 + len(values) * 4.0

    def martingale(mean):
        squared = n * (values.mean() - mean) ** 2 / values.var(ddof=1) / (n - 1)
        return spread**-0.5 * ((1 + squared) / (1 + squared / spread)) ** (n / 2)

    half = half_width(values)
    assert martingale(values.mean() + half) == pytest.approx(20) == martingale(values.mean() - half)
    assert martingale(values.mean() + 0.9 * half) < 20


def test_one_value_says_nothing_and_more_never_widen_what_is_known():
    values = np.random.default_rng(5).normal(size=12)
    assert half_width(values[:1]) == math.inf
    pairs = [limits(values[:n]) for n in range(2, 13)]
    assert all(a[0] <= b[0] and b[1] <= a[1] for a, b in pairwise(pairs))


def test_equal_values_say_nothing_of_others():
    """Gains on few problems lie on a grid: the same one four times does not mean that the next is, too."""
    assert limits([0.01] * 4) == (-math.inf, math.inf)
    low, high = limits([0.01] * 4 + [0.02])
    assert low < 0.01 and high > 0.02
