import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mcgrpo.analyse.stats import Estimate, detectable, half_width

STUDENT = Estimate(0.02, 5, standard_error=0.01, degrees_of_freedom=4.0)
SHARE = Estimate(0.3, 1, standard_error=0.08, degrees_of_freedom=29.0, effective_n=30)


def test_student_limits():
    assert STUDENT.limits() == pytest.approx(stats.t.interval(0.95, 4, 0.02, 0.01))
    equal = Estimate(2.0, 3, 0.0, 2.0)
    assert equal.limits() == (2.0, 2.0)
    for of in (STUDENT, SHARE, equal):
        assert (of.p_value(-math.inf, "greater"), of.p_value(-math.inf, "less")) == (0.0, 1.0)
        assert (of.p_value(math.inf, "less"), of.p_value(math.inf, "greater")) == (0.0, 1.0)
    assert (equal.p_value(1.0, "greater"), equal.p_value(2.0, "greater"), equal.p_value(3.0, "less")) == (0.0, 1.0, 0.0)


def test_limits_of_a_share_are_clopper_and_pearsons():
    exact = stats.binomtest(9, 30).proportion_ci(0.95, "exact")
    assert SHARE.limits() == pytest.approx((exact.low, exact.high))


def test_without_an_error_there_is_no_interval_and_nothing_is_certain():
    for empty in (Estimate(), Estimate(0.4, 1)):
        assert empty.limits() == (None, None)
        assert empty.detectable is None
        assert (empty.p_value(0.0, "greater"), empty.p_value(9.0, "less")) == (1.0, 1.0)


@pytest.mark.parametrize("of", [STUDENT, SHARE, Estimate(0.0, 3, 0.05, 29.0, effective_n=30)])
@given(level=st.floats(0.5, 0.999), shift=st.floats(1e-4, 0.01))
def test_a_test_at_a_level_says_what_the_interval_says(of, level, shift):
    low, high = of.limits(level)
    tail = (1 - level) / 2
    for bound, alternative, excluded in (
        (low - shift, "greater", True),
        (low + shift, "greater", False),
        (high + shift, "less", True),
        (high - shift, "less", False),
    ):
        if 0 < bound < 1 or of.effective_n is None:
            assert (of.p_value(bound, alternative) <= tail) == excluded


def test_no_answer_right_is_no_proof_that_the_share_is_zero():
    none = Estimate(0.0, 3, 0.05, 29.0, effective_n=30)
    assert none.p_value(0.0, "greater") == 1.0
    assert none.p_value(0.05, "less") == pytest.approx(0.95**30)


@pytest.mark.parametrize("freedom", [2.0, 4.0, 29.0])
def test_the_detectable_effect_is_seen_in_four_of_five_studies(freedom):
    effect = detectable(1.0, freedom)
    quantile = stats.t.ppf(0.975, freedom)
    assert stats.nct.sf(quantile, freedom, effect) == pytest.approx(0.8, abs=1e-5)


def test_half_width_of_arrays_is_nan_below_two_values():
    wide = half_width([1.0, 1.0], [1, 2])
    assert math.isnan(wide[0])
    assert wide[1] == pytest.approx(12.706205, rel=1e-6)
