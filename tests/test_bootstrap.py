import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.bootstrap import RESAMPLES, interval, sample, variance_of_mean
from mcgrpo.stats import Estimate, mean_interval

EFFECT = 0.05


def of(values):
    return interval(sample(np.array(values, dtype=float)))


def test_variance_components_by_hand():
    # Seed means 0, 3, 0: variance 3 over 3 seeds. Problem means 0, 2: variance 2 over 2 problems. Residuals 1, -1, -2,
    # 2, 1, -1: squares 12 over 2 degrees of freedom and 6 values. Parts 1, 1, 1: seeds and problems add nothing to the
    # rest. 1 / (1/2 + 1/1 + 1/2) degrees of freedom, but 1 at least.
    values = np.array([[0.0, 0.0], [0.0, 6.0], [0.0, 0.0]])
    assert variance_of_mean(values) == (1.0, 1.0)
    # Problem means 0, 10: variance 50 over 2 problems. 1 + 25 - 1 in all.
    assert variance_of_mean(values + np.array([0.0, 8.0])) == (25.0, 1.0)
    # Seed means 0, 15, 0 beside: variance 75 over 3 seeds. 25 + 1 - 1 in all, with 625 / (625/2 + 1/1 + 1/2) degrees.
    assert variance_of_mean(values + np.array([[0.0], [12.0], [0.0]])) == pytest.approx((25.0, 625 / 314))


def test_without_noise_of_problems_it_is_the_t_interval_over_seeds():
    seeds = [0.3, 0.5, 0.7]
    assert of([[seed] * 50 for seed in seeds]) == pytest.approx(mean_interval(seeds))


def test_one_seed_has_the_width_of_a_t_interval_over_problems():
    estimate = of([[0.0] * 15 + [1.0] * 5])
    t = mean_interval([0.0] * 15 + [1.0] * 5)
    assert estimate.n == 1
    assert estimate.high - estimate.low == pytest.approx(t.high - t.low)
    # A quarter right: there is more room above than below.
    assert estimate.high - estimate.mean > estimate.mean - estimate.low > 0


def test_one_problem_leaves_the_seeds_and_one_value_nothing():
    assert of([[0.3], [0.5], [0.7]]) == pytest.approx(mean_interval([0.3, 0.5, 0.7]))
    assert of([[0.25]]) == Estimate(0.25, None, None, 1)


@pytest.mark.parametrize("shape", [(1, 30), (3, 30), (5, 1)])
def test_equal_values_have_a_zero_width_interval(shape):
    estimate = of(np.full(shape, 0.1))
    assert estimate.low == estimate.mean == estimate.high == pytest.approx(0.1)


@given(arrays(float, (3, 12), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
def test_the_mean_is_inside_and_the_interval_mirrors(values):
    up, down = of(values), of(1 - values)
    assert up.low <= up.mean <= up.high
    assert (down.low, down.high) == pytest.approx((1 - up.high, 1 - up.low))


@given(arrays(float, (3, 12), elements=st.floats(0, 1)), st.permutations(range(3)))
def test_a_cell_does_not_depend_on_the_cells_beside_it(values, order):
    together = sample(np.vstack([values[::-1], np.ones((4, 12)) / 3, values]))
    assert interval(together.take([7, 8, 9])) == of(values)
    assert np.array_equal(together.take([2, 1, 0]).resampled, sample(values).resampled)
    assert interval(together.take([7 + place for place in order])).mean == pytest.approx(of(values).mean)


def test_resamples_are_those_of_the_number_of_problems():
    ones = np.eye(2, 7)
    first, second = sample(ones).resampled, sample(ones[::-1]).resampled
    assert first.shape == (2, RESAMPLES)
    assert np.array_equal(first, second[::-1])
    # Each of 7 problems is drawn once in a mean of 7.
    assert first.mean() == pytest.approx(1 / 7, rel=0.02)
    assert first.var() == pytest.approx(6 / 7**3, rel=0.05)


def test_pairing_removes_what_seeds_and_problems_share():
    generator = np.random.default_rng(1)
    shared = generator.normal(size=(4, 1)) + generator.normal(size=(1, 40))
    difference = interval(sample(shared + EFFECT) - sample(shared))
    assert difference[:3] == pytest.approx((EFFECT,) * 3)
    assert interval(sample(shared)).high - interval(sample(shared)).low > 0.5


def uniform(generator, studies, problems):
    return generator.uniform(0.2, 0.7, (studies, 1, problems))


def hard(generator, studies, problems):
    """Most problems are never solved."""
    return generator.choice([0.0, 0.5, 1.0], (studies, 1, problems), p=[0.8, 0.1, 0.1])


CASES = [
    # seeds, problems, noise of seeds, chance of each problem, its mean
    pytest.param(3, 100, 0.09, uniform, 0.45, id="seeds dominate, 3"),
    pytest.param(5, 100, 0.09, uniform, 0.45, id="seeds dominate, 5"),
    pytest.param(3, 60, 0.0, hard, 0.15, id="problems dominate, 3"),
    pytest.param(5, 100, 0.0, hard, 0.15, id="problems dominate, 5"),
    pytest.param(1, 100, 0.0, uniform, 0.45, id="one seed"),
    pytest.param(1, 60, 0.0, hard, 0.15, id="one seed, hard problems"),
    pytest.param(3, 100, 0.03, uniform, 0.45, id="both, 3"),
    pytest.param(5, 200, 0.03, uniform, 0.45, id="both, 5"),
]


def studies(generator, seeds, problems, noise, chances, shift=0.0, number=1000):
    """Independent studies: number x seeds x problems, each value right with the problem's chance + seed's + shift."""
    chance = chances + noise * generator.normal(size=(number, seeds, 1)) + shift
    return (generator.random((number, seeds, problems)) < chance).astype(float)


def intervals(values):
    number, seeds, problems = values.shape
    drawn = sample(values.reshape(-1, problems))
    return [interval(drawn.take(range(k * seeds, (k + 1) * seeds))) for k in range(number)]


def coverage(estimates, truth):
    return np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])


@pytest.mark.parametrize(("seeds", "problems", "noise", "chances", "truth"), CASES)
def test_intervals_cover_the_truth(seeds, problems, noise, chances, truth):
    generator = np.random.default_rng(7)
    values = studies(generator, seeds, problems, noise, chances(generator, 1000, problems))
    assert 0.92 <= coverage(intervals(values), truth) <= 0.98


EVEN, MIXED = ([EFFECT], [1.0]), ([-0.4, 0.0, 0.4], [0.3, 0.2, 0.5])
PAIRS = [
    # seeds, problems, noise of seeds, gains and shares of problems that make them, bounds of the coverage
    pytest.param(3, 100, 0.09, EVEN, (0.92, 0.98), id="seeds dominate, 3"),
    pytest.param(5, 100, 0.09, EVEN, (0.92, 0.98), id="seeds dominate, 5"),
    pytest.param(5, 100, 0.0, MIXED, (0.92, 0.98), id="problems matter most"),
    pytest.param(1, 100, 0.0, MIXED, (0.92, 0.98), id="one seed"),
    pytest.param(5, 200, 0.03, MIXED, (0.92, 0.98), id="both"),
    pytest.param(3, 100, 0.0, EVEN, (0.95, 0.995), id="neither: mildly conservative"),
]


@pytest.mark.parametrize(("seeds", "problems", "noise", "gains", "bounds"), PAIRS)
def test_paired_differences_cover_the_truth(seeds, problems, noise, gains, bounds):
    generator = np.random.default_rng(8)
    values, shares = np.array(gains)
    shared = generator.uniform(0.45, 0.55, (1000, 1, problems))
    shift = generator.choice(values, (1000, 1, problems), p=shares)
    ours = studies(generator, seeds, problems, noise, shared, shift)
    theirs = studies(generator, seeds, problems, noise, shared)
    low, high = bounds
    assert low <= coverage(intervals(ours - theirs), values @ shares) <= high


@pytest.mark.parametrize(("seeds", "problems"), [(1, 500), (3, 512), (5, 30), (5, 500)])
@pytest.mark.parametrize("expected", [1, 4, 20])
def test_a_few_answers_that_differ_are_no_effect(seeds, problems, expected):
    """Two models of one accuracy that differ in `expected` answers: called different in about 5% of studies at most."""
    generator = np.random.default_rng(expected)
    null = sample(np.zeros((seeds, problems)))
    found = 0
    for _ in range(300):
        signs = generator.choice([-1.0, 1.0], (seeds, problems))
        estimate = interval(sample(np.where(generator.random(signs.shape) < expected / signs.size, signs, 0.0)) - null)
        found += estimate.low > 0 or estimate.high < 0
    assert found / 300 < 0.09


def test_two_wins_of_a_thousand_are_no_effect():
    values = np.zeros((1, 1000))
    values[0, :2] = 1.0
    estimate = interval(sample(values) - sample(np.zeros_like(values)))
    assert estimate.low < 0 < estimate.mean


def test_percentiles_alone_would_cover_too_little():
    """What the corrected width is for: the same resamples, taken as they are."""
    generator = np.random.default_rng(9)
    values = studies(generator, 3, 100, 0.09, uniform(generator, 300, 100), number=300)
    plain = []
    for study in values:
        draws = generator.integers(3, size=(1000, 3))
        low, high = np.quantile(study.mean(axis=1)[draws].mean(axis=1), [0.025, 0.975])
        plain.append(Estimate(study.mean(), low, high, 3))
    assert coverage(plain, 0.45) < 0.85 < 0.9 < coverage(intervals(values), 0.45)


def test_a_study_of_the_papers_size_takes_seconds():
    generator = np.random.default_rng(3)
    values = (generator.random((100, 5, 1319)) < 0.8).astype(float)
    sample(values[0])
    start = time.perf_counter()
    estimates = intervals(values)
    assert time.perf_counter() - start < 5
    assert all(estimate.low < 0.8 < estimate.high for estimate in estimates[:3])
