"""Estimators by hand, and their options."""

import math
from dataclasses import replace

import pytest
import torch
from reward_batches import MEDIAN, NAN, one

from mcgrpo.estimators import ESTIMATORS, check_options, clamp_and_diagnose, compute_estimate, estimate


class TestByHand:
    def test_median_mad_with_spread(self):
        # median 1.5, deviations 1.5 0 0.5: MAD 0.5
        advantages, keep = one([0.0, 1.5, 2.0], "median-mad", 2)
        assert advantages == pytest.approx([-1.5 / 0.501, 0.0, 0.5 / 0.501])
        assert keep == [True, False, True]

    def test_median_mad_where_mad_is_zero(self):
        # the rule with discrete rewards: median 0, MAD 0, so the one success weighs 2 / epsilon
        advantages, keep = one([0.0, 0.0, 2.0], "median-mad", 2)
        assert advantages == pytest.approx([0.0, 0.0, 2000.0])
        assert keep == [False, True, True]

    def test_median_is_not_scaled(self):
        advantages, keep = one([2.0, 0.0, 0.0, 1.5, 2.0], "median", 4)
        assert advantages == [0.5, -1.5, -1.5, 0.0, 0.5]
        assert keep == [True, True, True, False, True]

    def test_plus1_drops_the_smallest_advantage_not_the_smallest_reward(self):
        # mean 4/3: the two successes deviate by 2/3, the failure by 4/3; the release would drop the failure
        advantages, keep = one([0.0, 2.0, 2.0], "mean-std-plus1", 2)
        assert keep == [True, False, True]
        assert advantages[0] < 0 < advantages[2]

    def test_diagnostics_are_over_all_rollouts_drawn(self):
        rewards = torch.tensor([[0.0, 0.0, 2.0], [0.0, 1.5, 2.0], [2.0, 2.0, 2.0], [0.0, NAN, 2.0]])
        _, _, found = estimate(rewards, "median-mad", 2)
        assert found["drawn/reward"].item() == pytest.approx((2 + 3.5 + 6 + 2) / 11)
        assert found["drawn/reward_first"].item() == pytest.approx((0 + 1.5 + 4 + 0) / 7)  # two of each three
        assert found["drawn/centre"].item() == pytest.approx((0 + 1.5 + 2 + 1) / 4)
        assert found["drawn/frac_reward_zero_std"].item() == 0.25
        assert found["drawn/frac_unscorable"].item() == pytest.approx(1 / 12)
        assert found["advantage/abs_max"].item() == pytest.approx(2000)
        assert found["advantage/frac_scale_zero"].item() == 0.5
        assert found["advantage/frac_zero"].item() == pytest.approx(3 / 8)
        assert found["advantage/frac_groups_zero"].item() == 0.25


class TestTiesAndUnscorable:
    @pytest.mark.parametrize("estimator", [*MEDIAN, "mean-std-plus1"])
    def test_an_unscorable_rollout_is_dropped_before_any_other(self, estimator):
        advantages, keep = one([0.0, NAN, 2.0], estimator, 2)
        assert keep == [True, False, True]
        assert advantages[0] == -advantages[2] != 0

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_more_unscorable_than_extra_rollouts(self, estimator):
        drawn = 4 + ESTIMATORS[estimator].extra_rollouts
        advantages, keep = one([1.0] + [NAN] * (drawn - 1), estimator, 4)
        assert advantages == [1.0 if estimator == "sign" else 0.0] + [0.0] * (drawn - 1)
        assert keep[0] and sum(keep) == 4


class TestRefused:
    @pytest.mark.parametrize(
        ("rewards", "estimator", "num_generations", "message"),
        [
            (torch.zeros(1, 2), "medain", 2, "unknown estimator 'medain'; there are: mean-std"),
            (torch.zeros(4, 2), "median", 2, r"2 \+ 1 = 3 rollouts a group"),
            (torch.zeros(4, 3), "mean", 2, r"2 \+ 0 = 2 rollouts a group"),
            (torch.zeros(4), "mean", 2, r"shape \(groups, drawn\)"),
            (torch.zeros(4, 2, dtype=torch.long), "mean", 2, "floats"),
            (torch.zeros(4, 1), "mean", 1, "num_generations at least 2"),
            (torch.tensor([[0.0, math.inf]]), "mean", 2, "infinite"),
        ],
    )
    def test_with_the_culprit_named(self, rewards, estimator, num_generations, message):
        with pytest.raises(ValueError, match=message):
            estimate(rewards, estimator, num_generations)


class TestInTwoHalves:
    def test_what_is_changed_between_them_is_bounded_and_diagnosed(self):
        half = compute_estimate(torch.tensor([[0.0, 1.5, 2.0]]), "median", 2)
        keep = torch.tensor([[True, True, False]])
        changed, found = clamp_and_diagnose(replace(half, advantages=half.advantages * 10, keep=keep), 12.0)
        assert changed.advantages.tolist() == [[-12.0, 0.0, 5.0]]
        assert found["advantage/abs_max"] == 12 and found["advantage/frac_zero"] == 0.5
        assert found["advantage/frac_clamped"] == 0.5


OPTIONS = [
    ({"mad_zero": "median"}, "unknown mad_zero 'median'; there are: epsilon, std, mean_absolute_deviation, unit, skip"),
    ({"max_advantage": 0.0}, "max_advantage is None or more than 0, not 0.0"),
    ({"max_advantage": NAN}, "max_advantage is None or more than 0, not nan"),
    ({"extra_rollouts": 1.0}, r"extra_rollouts is None or a whole number of at least 0, not 1\.0"),
    ({"epsilon": -1e-3}, r"epsilon \(a config's advantage_epsilon\) is None or a finite number >= 0, not -0\.001"),
    ({"epsilon": NAN}, "advantage_epsilon.* not nan"),
]


class TestOptions:
    @pytest.mark.parametrize(("option", "message"), OPTIONS)
    def test_that_mean_nothing_are_refused(self, option, message):
        for refuse in (check_options, lambda **option: estimate(torch.zeros(1, 3), "median", 2, **option)):
            with pytest.raises(ValueError, match=message):
                refuse(**option)

    @pytest.mark.parametrize(
        ("estimator", "option", "message"),
        [
            ("mean-std", {"mad_zero": "std"}, "does not use mad_zero='std': .*; used by: median-mad$"),
            ("quantile-0.4", {"mad_zero": "skip"}, "does not use mad_zero='skip'"),
            ("median", {"epsilon": 0.1}, r"epsilon=0\.1 \(a config's advantage_epsilon\): .*; used by: mean-std, "),
        ],
    )
    def test_that_the_estimator_does_not_use_are_refused(self, estimator, option, message):
        rewards = torch.zeros(1, 2 + ESTIMATORS[estimator].extra_rollouts)
        with pytest.raises(ValueError, match=f"estimator '{estimator}' does not use {next(iter(option))}=.*"):
            check_options(estimator=estimator, **option)
        with pytest.raises(ValueError, match=message):
            estimate(rewards, estimator, 2, **option)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_that_are_the_defaults_are_not_refused(self, estimator):
        rule = ESTIMATORS[estimator]
        check_options(estimator=estimator, mad_zero="epsilon", extra_rollouts=3, epsilon=rule.epsilon)

    def test_another_number_of_extra_rollouts(self):
        # median of the five 1, deviations 1 1 0 0 2: both zeros go, and the first of the ones, to leave two
        advantages, keep = one([0.0, 2.0, 1.0, 1.0, 3.0], "median", 2, extra_rollouts=3)
        assert advantages == [-1.0, 1.0, 0.0, 0.0, 2.0]
        assert keep == [False, True, False, False, True]
        assert one([0.0, 2.0], "median", 2, extra_rollouts=0) == ([-1.0, 1.0], [True, True])

    def test_a_bound_on_advantages_is_logged(self):
        rewards = torch.tensor([[0.0, 0.0, 2.0], [0.0, 1.0, 2.0]])
        advantages, _, found = estimate(rewards, "median-mad", 2, max_advantage=10.0)
        assert advantages[0].tolist() == [0.0, 0.0, 10.0]
        assert found["advantage/abs_max"] == 10 and found["advantage/frac_clamped"] == 0.25
        assert "advantage/frac_clamped" not in estimate(rewards, "median-mad", 2)[2]
