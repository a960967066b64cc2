import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from mcgrpo.stats import Estimate, half_width, mean_interval, paired_difference, verdict


def test_interval_by_hand():
    # mean 2, standard deviation 1, standard error 1/sqrt(3), t(0.975, 2) = 4.302653
    estimate = mean_interval([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.high - estimate.mean == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert estimate.mean - estimate.low == pytest.approx(estimate.high - estimate.mean)
    assert estimate.n == 3


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10).filter(lambda v: max(v) - min(v) > 1e-6))
def test_interval_is_scipys_one_sample_interval(values):
    theirs = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_interval(values)[1:3] == pytest.approx(tuple(theirs), abs=1e-9)


def test_one_value_has_no_interval():
    assert mean_interval([0.25]) == Estimate(0.25, None, None, 1)


def test_equal_values_have_a_zero_width_interval():
    estimate = mean_interval([0.1] * 3)
    assert estimate.low == estimate.mean == estimate.high


def test_no_values_is_an_error():
    with pytest.raises(ValueError, match="no values"):
        mean_interval([])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_named(bad):
    with pytest.raises(ValueError, match=f"value 1 is {bad}"):
        mean_interval([0.5, bad])
    with pytest.raises(ValueError, match=f"seed 7: {bad}"):
        paired_difference({7: 0.5, 8: 0.1}, {7: bad, 8: 0.1})


def test_difference_is_paired_over_shared_seeds_only():
    # Differences at seeds 1 and 2 are 0.1 and 0.3; seeds 0 and 9 have no partner.
    estimate = paired_difference({0: 9.0, 1: 0.6, 2: 0.9}, {1: 0.5, 2: 0.6, 9: 0.0})
    assert estimate.mean == pytest.approx(0.2)
    assert estimate.high == pytest.approx(0.2 + 12.706205 * 0.1, rel=1e-6)
    assert estimate.n == 2


def test_pairing_removes_what_seeds_share():
    baseline = {0: 0.1, 1: 0.5, 2: 0.9}
    estimate = paired_difference({seed: value + 0.05 for seed, value in baseline.items()}, baseline)
    assert (estimate.low, estimate.high) == pytest.approx((0.05, 0.05))


def test_difference_without_or_with_one_shared_seed():
    assert paired_difference({0: 0.5}, {1: 0.5}) == Estimate(None, None, None, 0)
    assert paired_difference({0: 0.5, 1: 0.1}, {0: 0.25}) == Estimate(0.25, None, None, 1)


def test_half_width_of_arrays_is_nan_below_two_values():
    wide = half_width([1.0, 1.0], [1, 2])
    assert math.isnan(wide[0])
    assert wide[1] == pytest.approx(12.706205, rel=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.1, 0.2, "above"),
        (-0.2, -0.1, "below"),
        (-0.1, 0.1, "indistinguishable"),
        (0.0, 0.1, "indistinguishable"),
        (-0.1, 0.0, "indistinguishable"),
        (None, None, "unknown"),
        (math.nan, math.nan, "unknown"),
    ],
)
def test_verdict(low, high, expected):
    assert verdict(low, high) == expected
