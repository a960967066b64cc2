import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from mcgrpo.analyse.crossed import Weighted, contrast, share
from mcgrpo.analyse.stats import LEVEL

EFFECT = 0.05


def difference(values):
    """A paired difference of two cells with values in [0, 1]."""
    return contrast([{"sums": Weighted(np.asarray(values, dtype=float), -1.0, 1.0)}])


def seconds(*values):
    """What has no problems."""
    return contrast([{"": Weighted(np.array(values)[:, None])}])


def t_interval(values):
    """Of the mean of independent values."""
    return stats.ttest_1samp(values, 0).confidence_interval(LEVEL)


def test_variance_components_by_hand():
    # Seed means 0, 3, 0: variance 3 over 3 seeds. Problem means 0, 2: variance 2 over 2 problems. Residuals 1, -1, -2,
    # 2, 1, -1: squares 12 over 2 degrees of freedom and 6 values. Parts 1, 1, 1: seeds and problems add nothing to the
    # rest. 1 / (1/2 + 1/1 + 1/2) degrees of freedom, but 1 at least.
    values = np.array([[0.0, 0.0], [0.0, 6.0], [0.0, 0.0]])
    found = difference(values)
    assert (found.standard_error**2, found.degrees_of_freedom) == pytest.approx((1.0, 1.0))
    # Problem means 0, 10: variance 50 over 2 problems. 1 + 25 - 1 in all.
    found = difference(values + np.array([0.0, 8.0]))
    assert (found.standard_error**2, found.degrees_of_freedom) == pytest.approx((25.0, 1.0))
    # Seed means 0, 15, 0 beside: variance 75 over 3 seeds. 25 + 1 - 1 in all, with 625 / (625/2 + 1/1 + 1/2) degrees.
    found = difference(values + np.array([[0.0], [12.0], [0.0]]))
    assert (found.standard_error**2, found.degrees_of_freedom) == pytest.approx((25.0, 625 / 314))


def test_without_problems_it_is_the_t_interval_over_seeds():
    times = [10.0, 12.0, 17.0]
    assert seconds(*times).limits() == pytest.approx(t_interval(times))
    assert seconds(*times).seeds == 3
    assert seconds(10.0).limits() == (None, None)
    assert seconds(10.0, 10.0).limits() == (10.0, 10.0)


def test_one_seed_has_the_t_interval_over_problems():
    values = [0.0] * 15 + [1.0] * 5
    assert difference([values]).limits() == pytest.approx(t_interval(values))
    low, high = share(np.array([values])).limits()
    # A quarter right: there is more room above than below.
    assert high - 0.25 > 0.25 - low > 0


def test_one_problem_leaves_the_seeds_and_one_value_nothing():
    assert share(np.array([[0.3], [0.5], [0.7]])).limits() == pytest.approx(t_interval([0.3, 0.5, 0.7]))
    assert share(np.array([[0.25]])).limits() == (None, None)
    assert share(np.zeros((5, 1))).limits() == (None, None)


@pytest.mark.parametrize(("seeds", "problems"), [(1, 30), (3, 30), (5, 1319)])
def test_limits_are_exact_where_no_problem_is_solved_or_every_one(seeds, problems):
    exact = stats.binomtest(0, problems).proportion_ci(LEVEL, "exact")
    assert share(np.zeros((seeds, problems))).limits() == pytest.approx((0.0, exact.high))
    assert share(np.ones((seeds, problems))).limits() == pytest.approx((1 - exact.high, 1.0))


@pytest.mark.parametrize("problems", [30, 500])
def test_models_that_answer_alike_may_differ_by_as_many_problems_as_could_go_unseen(problems):
    unseen = stats.binomtest(0, problems).proportion_ci(LEVEL, "exact").high
    found = difference(np.zeros((3, problems)))
    assert found.limits() == pytest.approx((-unseen, unseen))
    assert found.detectable > unseen


@given(arrays(float, (3, 12), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
def test_the_mean_is_inside_and_the_interval_mirrors(values):
    up, down = share(values), share(1 - values)
    assert 0 <= up.limits()[0] <= up.mean <= up.limits()[1] <= 1
    assert up.limits()[0] < up.limits()[1]
    assert down.limits() == pytest.approx([1 - bound for bound in up.limits()[::-1]], abs=1e-6)


def test_problems_of_one_hash_are_shared_by_all_parts():
    """Two models on the same hard and easy problems: what one gains there the other loses."""
    problems = np.where(np.arange(60) % 2, 0.4, -0.4)
    noise = np.random.default_rng(3).normal(scale=0.01, size=(2, 3, 60))
    first, second = problems + noise[0], -problems + noise[1]
    shared = contrast([{"sums": Weighted(first)}, {"sums": Weighted(second)}])
    apart = contrast([{"sums": Weighted(first)}, {"chains": Weighted(second)}])
    assert shared.mean == apart.mean
    assert shared.standard_error < 0.1 * apart.standard_error
    assert apart.standard_error**2 == pytest.approx(2 * 0.16 / 60, rel=0.1)


def uniform(generator, studies, problems):
    return generator.uniform(0.2, 0.7, (studies, 1, problems))


def hard(generator, studies, problems):
    """Most problems are never solved."""
    return generator.choice([0.0, 0.5, 1.0], (studies, 1, problems), p=[0.8, 0.1, 0.1])


CASES = [
    # seeds, problems, noise of seeds, chance of each problem, its mean
    pytest.param(3, 100, 0.09, uniform, 0.45, id="seeds dominate"),
    pytest.param(5, 100, 0.0, hard, 0.15, id="problems dominate"),
    pytest.param(1, 60, 0.0, hard, 0.15, id="one seed, hard problems"),
    pytest.param(3, 100, 0.03, uniform, 0.45, id="both"),
]


def studies(generator, seeds, problems, noise, chances, shift=0.0, number=1000):
    """Independent studies: number x seeds x problems, each value right with the problem's chance + seed's + shift."""
    chance = chances + noise * generator.normal(size=(number, seeds, 1)) + shift
    return (generator.random((number, seeds, problems)) < chance).astype(float)


def coverage(estimates, truth):
    limits = [estimate.limits() for estimate in estimates]
    return np.mean([low <= truth <= high for low, high in limits])


@pytest.mark.parametrize(("seeds", "problems", "noise", "chances", "truth"), CASES)
@pytest.mark.slow
def test_intervals_cover_the_truth(seeds, problems, noise, chances, truth):
    generator = np.random.default_rng(7)
    values = studies(generator, seeds, problems, noise, chances(generator, 1000, problems))
    assert 0.92 <= coverage(map(share, values), truth) <= 0.98


@pytest.mark.parametrize(("seeds", "chance"), [(1, 0.003), (1, 0.03), (5, 0.01)])
@pytest.mark.slow
def test_rare_answers_are_covered_too(seeds, chance):
    """Where the values alone would often say that a model solves nothing, and for certain."""
    values = studies(np.random.default_rng(6), seeds, 30, 0.0, chance)
    assert coverage(map(share, values), chance) >= 0.95


EVEN, MIXED = ([EFFECT], [1.0]), ([-0.4, 0.0, 0.4], [0.3, 0.2, 0.5])
PAIRS = [
    # seeds, problems, noise of seeds, gains and shares of problems that make them, bounds of the coverage
    pytest.param(3, 100, 0.09, EVEN, (0.92, 0.98), id="seeds dominate, 3"),
    pytest.param(5, 100, 0.09, EVEN, (0.92, 0.98), id="seeds dominate, 5"),
    pytest.param(5, 100, 0.0, MIXED, (0.92, 0.98), id="problems matter most"),
    pytest.param(1, 100, 0.0, MIXED, (0.92, 0.98), id="one seed"),
    pytest.param(5, 200, 0.03, MIXED, (0.92, 0.98), id="both"),
    pytest.param(2, 300, 0.05, MIXED, (0.89, 0.98), id="both, 2: too narrow"),
    pytest.param(3, 100, 0.0, EVEN, (0.95, 0.995), id="neither: mildly conservative"),
]


@pytest.mark.parametrize(("seeds", "problems", "noise", "gains", "bounds"), PAIRS)
@pytest.mark.slow
def test_paired_differences_cover_the_truth(seeds, problems, noise, gains, bounds):
    generator = np.random.default_rng(8)
    values, shares = np.array(gains)
    shared = generator.uniform(0.45, 0.55, (1000, 1, problems))
    shift = generator.choice(values, (1000, 1, problems), p=shares)
    ours = studies(generator, seeds, problems, noise, shared, shift)
    theirs = studies(generator, seeds, problems, noise, shared)
    low, high = bounds
    assert low <= coverage(map(difference, ours - theirs), values @ shares) <= high
