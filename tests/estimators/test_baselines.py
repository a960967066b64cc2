"""Baselines by hand, against numpy and torch, and what leaving a rollout out of its own baseline is for."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import estimate, quantile
from mcgrpo.estimators.baselines import batch_mean, james_stein, leave_one_out, quantile_of

NAN = float("nan")
LEVELS = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, NAN])
GROUPS = st.tuples(st.integers(1, 5), st.sampled_from([2, 3, 4, 8])).flatmap(
    lambda shape: arrays("float32", shape, elements=LEVELS).map(torch.from_numpy)
)


class TestJamesStein:
    def test_by_hand(self):
        # means 1 2 0, variances / number 1 0 0. First group: the others have no spread, so lambda 0. Second: noise of
        # the others 1/2, their means 1 0 about 1/2, squared deviation 1/4, lambda 2/3: 2/3 + 1/3. Third: 0 + 2/3 x 3/2.
        found = james_stein(torch.tensor([[0.0, 2.0], [2.0, 2.0], [0.0, 0.0]]))
        assert found.flatten().tolist() == pytest.approx([2, 0, 1, 1, 1, 1])

    @pytest.mark.parametrize("count", range(2, 12))
    def test_where_no_other_group_has_a_spread_it_is_leave_one_out(self, count):
        rewards = torch.full((count, 8), 2.0)
        rewards[0, 1] = 1.0
        assert torch.equal(james_stein(rewards)[0], leave_one_out(rewards)[0])

    def test_a_group_without_rewards_is_no_other_group(self):
        rewards = torch.tensor([[0.0, 2.0, 1.0], [2.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
        with_one = torch.cat([rewards, torch.full((1, 3), NAN)])
        torch.testing.assert_close(james_stein(with_one)[:3], james_stein(rewards))
        assert james_stein(with_one)[3].isnan().all()


class TestBatchMean:
    REWARDS = torch.tensor([[2.0, 2.0], [0.0, NAN], [0.0, 1.0]])

    def test_by_hand(self):
        assert batch_mean(self.REWARDS).tolist() == [[1.0]]
        # squares about 1: 1 1 1 1 0 over 4, so a std of 1
        found, _, _ = estimate(self.REWARDS, "batch-mean", 2, epsilon=0.0)
        assert found.tolist() == [[1.0, 1.0], [-1.0, 0.0], [-1.0, 0.0]]


class TestSign:
    def test_by_hand(self):
        """2 r - 1 for rewards of 0 and 1, and of the accuracy reward whether a completion is accurate."""
        found, keep, logged = estimate(torch.tensor([[0.0, 1.0], [0.0, 0.0], [2.0, 0.5], [NAN, 2.0]]), "sign", 2)
        assert found.tolist() == [[-1.0, 1.0], [-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]
        assert keep.all() and logged["advantage/frac_groups_zero"] == 0


class TestBias:
    """Of the gradient at p of a policy that succeeds with probability p, over all that can be drawn; it should be 1."""

    @staticmethod
    def gradient(estimator, groups, size, p=0.3):
        total = 0.0
        for outcome in itertools.product([0.0, 1.0], repeat=groups * size):
            rewards = torch.tensor(outcome, dtype=torch.float64).view(groups, size)
            chance = math.prod(p if success else 1 - p for success in outcome)
            advantages, _, _ = estimate(rewards, estimator, size, extra_rollouts=0)
            score = rewards / p - (1 - rewards) / (1 - p)
            total += chance * (advantages * score).mean().item()
        return total

    @pytest.mark.slow
    @pytest.mark.parametrize(("groups", "size"), [(1, 2), (1, 4), (3, 3)])
    def test_none_where_a_rollout_is_left_out_of_its_baseline(self, groups, size):
        for estimator in ("rloo", "james-stein"):
            assert self.gradient(estimator, groups, size) == pytest.approx(1)

    @pytest.mark.parametrize("size", [2, 4])
    def test_a_factor_where_it_is_not(self, size):
        assert self.gradient("mean", 1, size) == pytest.approx((size - 1) / size)

    @pytest.mark.parametrize(("groups", "size"), [(1, 2), (2, 3)])
    def test_a_fixed_reference_has_none_but_the_factor_of_its_unit(self, groups, size):
        assert self.gradient("sign", groups, size) == pytest.approx(2)

    @pytest.mark.parametrize("size", [2, 3, 4])
    def test_maxrl_is_that_of_the_log_likelihood_without_what_so_few_rollouts_cannot_see(self, size, p=0.3):
        """arXiv 2602.02710: the sum over k < G of (1 - p)^(k - 1) is log P(success)'s derivative, cut after G - 1."""
        assert self.gradient("maxrl", 1, size, p) == pytest.approx(sum((1 - p) ** k for k in range(size - 1)))


class TestQuantile:
    def test_by_hand(self):
        rewards = torch.tensor([[4.0, 0.0, 3.0, 1.0, 2.0], [4.0, NAN, NAN, NAN, 2.0]])
        assert quantile_of(rewards, 0.4).flatten().tolist() == pytest.approx([1.6, 2.8])

    @given(GROUPS, st.sampled_from([0.1, 0.4, 0.5, 0.6, 0.75]))
    def test_agrees_with_numpy(self, rewards, level):
        found = quantile_of(rewards.double(), level)[:, 0].tolist()
        for row, value in zip(rewards.tolist(), found, strict=True):
            scorable = [reward for reward in row if not math.isnan(reward)]
            assert value == pytest.approx(np.quantile(scorable, level) if scorable else NAN, nan_ok=True)

    @pytest.mark.parametrize("level", [0.0, 40, NAN])
    def test_a_level_that_is_none_is_refused(self, level):
        with pytest.raises(ValueError, match=rf"inside \(0, 1\), not {level}"):
            quantile(level)
