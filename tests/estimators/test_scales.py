"""Scales by hand and against torch's own, and what takes the place of one that is 0."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import MAD_ZERO, Estimator, estimate, quantile
from mcgrpo.estimators.statistics import mad, mean, median

NAN = float("nan")


def advantages(rewards, estimator, **options):
    rewards = torch.tensor(rewards)
    return estimate(rewards, estimator, rewards.size(1), extra_rollouts=0, **options)[0]


class TestByHand:
    def test_the_centred_batch_does_not_count_what_groups_differ_by(self):
        one, other = (
            advantages([[0.0, 2.0], [1.0, 1.0]], "reinforce++"),
            advantages([[0.0, 2.0], [9.0, 9.0]], "reinforce++"),
        )
        assert torch.equal(one, other)
        assert one[0, 1].item() == pytest.approx(1 / (math.sqrt(2 / 3) + 1e-4))

    def test_the_mad_about_the_mean(self, register):
        register("mean-mad", Estimator(mean, mad, epsilon=1e-3))
        # mean 1, absolute deviations 1 1 1 3: median 1, where about the median it would be 0
        found = advantages([[0.0, 0.0, 0.0, 4.0]], "mean-mad")
        assert found[0].tolist() == pytest.approx([-1 / 1.001] * 3 + [3 / 1.001])

    def test_a_quantiles_is_about_the_mean(self):
        # quantile 0; mean 1/5, squares 4 x 1/25 + 16/25 over 4: std sqrt(1/5), where about the quantile it is sqrt(1/4)
        found = advantages([[0.0, 0.0, 0.0, 0.0, 1.0]], "quantile-0.4")
        assert found[0].tolist() == pytest.approx([0, 0, 0, 0, 2.2356], abs=5e-5)
        # quantile 1; mean 7/8, squares 49/64 + 7 x 1/64 over 7: std sqrt(1/8), where about the quantile it is sqrt(1/7)
        found = advantages([[0.0] + [1.0] * 7], "quantile-0.4")
        assert found[0].tolist() == pytest.approx([-2.828] + [0] * 7, abs=5e-4)

    def test_a_quantiles_when_a_rollout_is_unscorable(self, register):
        register("quantile-0.6", quantile(0.6))
        # of 0 0 3 at level 0.6: place 1.2, quantile 0.6; mean 1, squares 1 + 1 + 4 over 2
        found = advantages([[0.0, NAN, 3.0, 0.0]], "quantile-0.6")
        divisor = math.sqrt(3) + 1e-4
        assert found[0].tolist() == pytest.approx([-0.6 / divisor, 0, 2.4 / divisor, -0.6 / divisor])


class TestTheMeanReward:
    def test_by_hand(self):
        # means 1/2, 2 and 0
        found = advantages([[0.0, 0.0, 0.0, 2.0], [2.0, NAN, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0]], "maxrl")
        assert found.tolist() == [[-1.0, -1.0, -1.0, 3.0], [0.0] * 4, [0.0] * 4]

    def test_negative_rewards_are_named(self):
        with pytest.raises(ValueError, match=r"\(MaxRL\) need rewards of at least 0; these hold -0.5"):
            advantages([[1.0, NAN, -0.5]], "maxrl")


class TestWhereTheScaleIsZero:
    @pytest.mark.parametrize(
        ("mad_zero", "divisor"),
        [
            ("epsilon", 1e-3),
            ("std", math.sqrt(4 / 3) + 1e-3),  # mean 5/3: squares 4/9 4/9 16/9 over 2
            ("mean_absolute_deviation", 2 / 3 + 1e-3),  # about the median: 0 0 2 over 3
            ("unit", 1.0),
            ("skip", math.inf),
        ],
    )
    def test_by_hand(self, mad_zero, divisor):
        found = advantages([[1.0, 1.0, 3.0], [1.0, 2.0, 3.0]], "median-mad", mad_zero=mad_zero)
        assert found[0].tolist() == pytest.approx([0.0, 0.0, 2 / divisor])
        assert found[1].tolist() == pytest.approx([-1 / 1.001, 0.0, 1 / 1.001])

    @given(arrays("float32", (4, 5), elements=st.sampled_from([0.0, 1.0, 2.0, NAN])), st.sampled_from(MAD_ZERO))
    def test_other_groups_are_left_alone_and_all_that_comes_out_is_finite(self, drawn, mad_zero):
        rewards = torch.from_numpy(drawn)
        found, _, _ = estimate(rewards, "median-mad", 4, mad_zero=mad_zero)
        plain, _, _ = estimate(rewards, "median-mad", 4)
        there = (mad(rewards, median(rewards)) > 0).flatten()
        assert torch.equal(found[there], plain[there])
        assert torch.isfinite(found).all()

    @pytest.mark.parametrize("mad_zero", MAD_ZERO)
    def test_how_often_is_logged_whatever_takes_its_place(self, mad_zero):
        rewards = torch.tensor([[0.0, 0.0, 2.0], [2.0, 2.0, 2.0], [0.0, 1.0, 2.0], [1.0, NAN, NAN], [NAN, NAN, NAN]])
        _, _, found = estimate(rewards, "median-mad", 2, mad_zero=mad_zero)
        assert found["advantage/frac_scale_zero"].item() == pytest.approx(3 / 5)
        assert found["advantage/frac_scale_zero_signal"].item() == pytest.approx(1 / 5)
        assert found["advantage/frac_groups_zero"].item() == pytest.approx(4 / 5 if mad_zero == "skip" else 3 / 5)


class TestWhereNothingDivides:
    """Neither a scale nor an epsilon, though the rewards of a group differ."""

    REWARDS = ((0.0, 1.0, 2.0), (2.0, 2.0, 2.0), (0.0, 0.0, 2.0), (0.0, NAN, NAN), (2.0, 2.0, 1.5))

    @pytest.mark.parametrize(("estimator", "options"), [("median-mad", {"epsilon": 0.0}), ("bare", {})])
    def test_it_is_an_error_with_the_ways_out(self, register, estimator, options):
        register("bare", Estimator(median, mad))
        message = (
            rf"estimator '{estimator}' with epsilon=0\.0 and mad_zero='epsilon' makes advantages infinite in 2 of 5 .*"
            r"first in group 2 \(rewards 0, 0, 2\)\. Set epsilon \(a config's advantage_epsilon\) above 0, or mad_zero "
            "to .*: std, mean_absolute_deviation, unit, skip$"
        )
        for bound in (None, 10.0):
            with pytest.raises(ValueError, match=message):
                advantages(self.REWARDS, estimator, max_advantage=bound, **options)

    @pytest.mark.parametrize("estimator", ["mean-std", "quantile-0.4", "batch-std", "reinforce++", "pods"])
    def test_a_std_needs_no_epsilon(self, estimator):
        found = advantages(self.REWARDS, estimator, epsilon=0.0)
        assert found.isfinite().all() and found[2].any()
