"""What holds of every estimator, or of a kind of them, whatever the rewards; and TRL's arithmetic."""

import math
import statistics

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_batches import MEDIAN, NAN, OVER_BATCH, batches, of

from mcgrpo.estimators import ESTIMATORS
from mcgrpo.estimators.statistics import median


class TestProperties:
    @given(batches())
    def test_exactly_g_rows_of_each_group_are_kept_and_advantages_are_finite(self, batch):
        advantages, keep, _ = of(batch)
        assert (keep.sum(dim=1) == batch[2]).all()
        assert torch.isfinite(advantages).all()
        assert (advantages[batch[0].isnan()] == 0).all()

    @given(batches(set(ESTIMATORS) - set(OVER_BATCH)))
    def test_deterministic_and_group_by_group(self, batch):
        rewards, estimator, num_generations = batch
        advantages, keep, _ = of(batch)
        for group in range(len(rewards)):
            place = slice(group, group + 1)
            alone, kept, _ = of((rewards[place], estimator, num_generations))
            assert torch.equal(alone[0], advantages[group])
            assert torch.equal(kept[0], keep[group])

    @given(batches(), st.randoms(use_true_random=False))
    def test_the_order_of_groups_does_not_matter(self, batch, random):
        rewards, estimator, num_generations = batch
        order = random.sample(range(len(rewards)), len(rewards))
        advantages, keep, _ = of(batch)
        moved, kept, _ = of((rewards[order], estimator, num_generations))
        torch.testing.assert_close(moved, advantages[order], rtol=1e-4, atol=1e-4)
        assert torch.equal(kept, keep[order])

    @given(batches([name for name in ESTIMATORS if not ESTIMATORS[name].extra_rollouts]))
    def test_the_order_of_rollouts_does_not_matter(self, batch):
        rewards, estimator, num_generations = batch
        advantages, _, _ = of(batch)
        turned, _, _ = of((rewards.flip(1), estimator, num_generations))
        torch.testing.assert_close(turned.flip(1), advantages, rtol=1e-4, atol=1e-2)

    @given(batches(["mean", "mean-std", "batch-std", "rloo", "reinforce++", "pods", "maxrl"]))
    def test_about_the_mean_the_advantages_of_a_group_add_up_to_zero(self, batch):
        advantages, _, _ = of(batch)
        assert (advantages.sum(dim=1).abs() <= 1e-5 * advantages.abs().sum(dim=1).clamp(min=1)).all()

    @given(batches(set(ESTIMATORS) - {"sign", "maxrl"}), st.sampled_from([1.0, -2.0, 0.5]))
    def test_a_shift_of_all_rewards_changes_nothing(self, batch, shift):
        rewards, estimator, num_generations = batch
        before, kept, _ = of(batch)
        after, kept_after, _ = of((rewards + shift, estimator, num_generations))
        torch.testing.assert_close(before, after, rtol=1e-4, atol=1e-2)
        if estimator in MEDIAN:  # exact in floating point, so the choice among ties is the same as well
            assert torch.equal(kept, kept_after)

    @given(batches())
    def test_better_rewards_never_have_smaller_advantages(self, batch):
        advantages, keep, _ = of(batch)
        rewards = batch[0].masked_fill(~keep, NAN) if batch[1] == "pods" else batch[0]  # of its own rows only
        better = rewards[:, :, None] > rewards[:, None, :]  # false wherever either is unscorable
        assert (advantages[:, :, None] >= advantages[:, None, :])[better].all()

    @given(batches(MEDIAN).filter(lambda batch: batch[2] % 2 == 0))
    def test_a_dropped_pivot_has_no_advantage(self, batch):
        """True of every odd group, ties or not, and of a group whose dropped rollout was unscorable.

        Section D of the paper: so without a KL term, dropping it changes no gradient.
        """
        advantages, keep, _ = of(batch)
        assert (advantages[~keep] == 0).all()

    @settings(max_examples=200)
    @given(batches(MEDIAN))
    def test_median_agrees_with_the_standard_library(self, batch):
        for row, found in zip(batch[0].tolist(), median(batch[0])[:, 0].tolist(), strict=True):
            scorable = [reward for reward in row if not math.isnan(reward)]
            assert math.isnan(found) if not scorable else found == statistics.median(scorable)


class TestAgainstTRL:
    @given(batches(["mean", "mean-std", "batch-std"]))
    def test_bit_for_bit(self, batch):
        """The lines of GRPOTrainer (1.16) that make advantages, on the same rewards."""
        from trl.trainer.utils import nanstd

        rewards, estimator, size = batch
        flat = rewards.flatten()
        expected = flat - torch.nanmean(flat.view(-1, size), dim=1).repeat_interleave(size, dim=0)
        if estimator == "mean-std":
            expected = expected / (nanstd(flat.view(-1, size), dim=1).repeat_interleave(size, dim=0) + 1e-4)
        elif estimator == "batch-std":
            expected = expected / (nanstd(flat).expand_as(flat) + 1e-4)
        found, _, _ = of(batch)
        assert torch.equal(found.flatten(), torch.nan_to_num(expected, nan=0.0))
