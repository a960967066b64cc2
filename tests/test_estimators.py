"""Estimators: by hand, by property, against TRL's arithmetic, and the paper's appendix as numbers."""

import math
import statistics
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import ESTIMATORS, check_flips, draw_flips, estimate
from mcgrpo.group_statistics import mad, median

NAN = float("nan")
MEDIAN = ("median-mad", "median")


def one(rewards, estimator, num_generations, **kwargs):
    """Advantages and kept rows of one group, as lists."""
    advantages, keep, _ = estimate(torch.tensor([rewards]), estimator, num_generations, **kwargs)
    return advantages[0].tolist(), keep[0].tolist()


class TestByHand:
    def test_mean_std(self):
        # mean 1, squared deviations 1 + 1 over G - 1 = 1: std sqrt(2)
        advantages, keep = one([0.0, 2.0], "mean-std", 2)
        expected = 1 / (math.sqrt(2) + 1e-4)
        assert advantages == pytest.approx([-expected, expected])
        assert keep == [True, True]

    def test_mean(self):
        advantages, keep = one([0.0, 0.0, 1.5, 2.0], "mean", 4)
        assert advantages == [-0.875, -0.875, 0.625, 1.125]
        assert keep == [True] * 4

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

    def test_epsilon_of_ones_own(self):
        assert one([0.0, 0.0, 2.0], "median-mad", 2, epsilon=1.0)[0] == [0.0, 0.0, 2.0]

    def test_diagnostics_are_over_all_rollouts_drawn(self):
        rewards = torch.tensor([[0.0, 0.0, 2.0], [0.0, 1.5, 2.0], [2.0, 2.0, 2.0], [0.0, NAN, 2.0]])
        _, _, found = estimate(rewards, "median-mad", 2)
        assert found["drawn/reward"].item() == pytest.approx((2 + 3.5 + 6 + 2) / 11)
        assert found["drawn/centre"].item() == pytest.approx((0 + 1.5 + 2 + 1) / 4)
        assert found["drawn/frac_reward_zero_std"].item() == 0.25
        assert found["drawn/frac_unscorable"].item() == pytest.approx(1 / 12)
        assert found["advantage/abs_max"].item() == pytest.approx(2000)
        assert found["advantage/frac_scale_zero"].item() == 0.5
        assert found["advantage/frac_zero"].item() == pytest.approx(3 / 8)
        assert found["advantage/frac_groups_zero"].item() == 0.25


class TestTiesAndUnscorable:
    @pytest.mark.parametrize("estimator", [*MEDIAN, "mean-std-plus1"])
    def test_among_ties_the_first_drawn_is_dropped(self, estimator):
        assert one([2.0, 2.0, 2.0], estimator, 2)[1] == [False, True, True]

    @pytest.mark.parametrize("estimator", [*MEDIAN, "mean-std-plus1"])
    def test_an_unscorable_rollout_is_dropped_before_any_other(self, estimator):
        advantages, keep = one([0.0, NAN, 2.0], estimator, 2)
        assert keep == [True, False, True]
        assert advantages[0] == -advantages[2] != 0

    def test_the_median_of_an_even_number_is_the_middle_of_two(self):
        assert median(torch.tensor([[0.0, NAN, 2.0]])).item() == 1.0

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_a_group_without_any_reward_has_no_signal(self, estimator):
        drawn = 2 + ESTIMATORS[estimator].extra_rollouts
        advantages, keep = one([NAN] * drawn, estimator, 2)
        assert advantages == [0.0] * drawn
        assert sum(keep) == 2

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_more_unscorable_than_extra_rollouts(self, estimator):
        drawn = 4 + ESTIMATORS[estimator].extra_rollouts
        advantages, keep = one([1.0] + [NAN] * (drawn - 1), estimator, 4)
        assert advantages == [0.0] * drawn
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


class TestFlips:
    KEEP = torch.tensor([[True, False, True, True, True], [True, True, True, True, False]]).repeat(500, 1)

    @pytest.mark.parametrize(("rate", "flipped"), [(0.0, 0), (0.25, 1), (0.5, 2), (1.0, 4)])
    def test_exact_is_that_many_of_the_kept_rows_of_every_group(self, rate, flipped):
        flips = draw_flips(self.KEEP, rate, "exact", "0/0/0")
        assert (flips.sum(dim=1) == flipped).all()
        assert not (flips & ~self.KEEP).any()

    def test_exact_favours_no_kept_row(self):
        share = draw_flips(self.KEEP, 0.25, "exact", "0/0/0")[::2].float().mean(dim=0)
        assert share[1] == 0
        assert share[[0, 2, 3, 4]].tolist() == pytest.approx([0.25] * 4, abs=0.08)  # 500 groups: 4 standard errors

    def test_bernoulli_flips_each_drawn_row_at_the_rate(self):
        flips = draw_flips(self.KEEP, 0.25, "bernoulli", "0/0/0")
        assert flips.float().mean().item() == pytest.approx(0.25, abs=0.025)  # 5000 rows: 4 standard errors
        assert flips[~self.KEEP].float().mean().item() == pytest.approx(0.25, abs=0.055)
        assert len(flips.sum(dim=1).unique()) > 2  # a number of its own in each group

    @pytest.mark.parametrize("rate", [0.0, 1.0])
    def test_bernoulli_at_its_ends(self, rate):
        assert (draw_flips(self.KEEP, rate, "bernoulli", "0/0/0") == bool(rate)).all()

    @pytest.mark.parametrize("rule", ["bernoulli", "exact"])
    def test_only_the_key_decides(self, rule):
        before = torch.get_rng_state()
        first = draw_flips(self.KEEP, 0.25, rule, "0/7/0")
        torch.manual_seed(1)
        assert torch.equal(first, draw_flips(self.KEEP, 0.25, rule, "0/7/0"))
        assert not torch.equal(first, draw_flips(self.KEEP, 0.25, rule, "7/0/0"))
        torch.set_rng_state(before)
        draw_flips(self.KEEP, 0.25, rule, "0/7/0")
        assert torch.equal(before, torch.get_rng_state())

    @pytest.mark.parametrize(
        ("rate", "rule", "message"),
        [
            (-0.1, "bernoulli", r"in \[0, 1\], not -0.1"),
            (1.5, "exact", r"in \[0, 1\], not 1.5"),
            (NAN, "bernoulli", r"in \[0, 1\], not nan"),
            (0.1, "exakt", "unknown flip rule 'exakt'; there are: bernoulli, exact"),
            (0.05, "exact", r"0.05 x 8 \(num_generations\) = 0.4 rollouts of each group"),
        ],
    )
    def test_refused(self, rate, rule, message):
        with pytest.raises(ValueError, match=message):
            check_flips(rate, rule, 8)

    def test_a_rate_that_is_whole_but_for_rounding_is_taken(self):
        check_flips(0.07, "exact", 100)  # 7.000000000000001
        check_flips(1 / 3, "exact", 3)

    @given(st.floats(0, 1), st.integers(0, 100), st.data())
    def test_flipping_deviations_before_scaling_equals_negating_advantages(self, rate, step, data):
        """The release's order: flip after centring, then divide by a scale which the flips leave as it is."""
        rewards, estimator, size = data.draw(batches().filter(lambda batch: ESTIMATORS[batch[1]].scale is mad))
        advantages, keep, _ = estimate(rewards, estimator, size)
        flips = draw_flips(keep, rate, "bernoulli", f"0/{step}/0")
        centred = rewards - median(rewards)
        flipped = torch.where(flips, -centred, centred)
        expected = flipped / (mad(flipped, torch.zeros(len(flipped), 1)) + ESTIMATORS[estimator].epsilon)
        assert torch.equal(torch.where(flips, -advantages, advantages), expected.nan_to_num(nan=0.0))

    def test_an_adjustment_is_seen_by_the_diagnostics(self):
        def tenfold(rewards, advantages, keep):
            return advantages * 10, torch.tensor([[True, True, False]])

        advantages, keep, found = estimate(torch.tensor([[0.0, 1.5, 2.0]]), "median", 2, adjust=tenfold)
        assert advantages.tolist() == [[-15.0, 0.0, 5.0]] and keep.tolist() == [[True, True, False]]
        assert found["advantage/abs_max"] == 15 and found["advantage/frac_zero"] == 0.5


@st.composite
def batches(draw):
    """(rewards as drawn by some estimator, its name, G): discrete rewards, so that ties are common."""
    estimator = draw(st.sampled_from(sorted(ESTIMATORS)))
    num_generations = draw(st.sampled_from([2, 3, 4, 8]))
    shape = (draw(st.integers(1, 5)), num_generations + ESTIMATORS[estimator].extra_rollouts)
    levels = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, NAN])
    return torch.from_numpy(draw(arrays("float32", shape, elements=levels))), estimator, num_generations


class TestProperties:
    @given(batches())
    def test_exactly_g_rows_of_each_group_are_kept(self, batch):
        _, keep, _ = estimate(*batch)
        assert (keep.sum(dim=1) == batch[2]).all()

    @given(batches())
    def test_advantages_are_finite_and_zero_where_unscorable(self, batch):
        advantages, _, _ = estimate(*batch)
        assert torch.isfinite(advantages).all()
        assert (advantages[batch[0].isnan()] == 0).all()

    @given(batches())
    def test_deterministic_and_group_by_group(self, batch):
        rewards, estimator, num_generations = batch
        advantages, keep, _ = estimate(rewards, estimator, num_generations)
        for group in range(len(rewards)):
            alone, kept, _ = estimate(rewards[group : group + 1], estimator, num_generations)
            assert torch.equal(alone[0], advantages[group])
            assert torch.equal(kept[0], keep[group])

    @given(batches(), st.sampled_from([1.0, -2.0, 0.5]))
    def test_a_shift_of_all_rewards_changes_nothing(self, batch, shift):
        rewards, estimator, num_generations = batch
        before, kept, _ = estimate(rewards, estimator, num_generations)
        after, kept_after, _ = estimate(rewards + shift, estimator, num_generations)
        torch.testing.assert_close(before, after, rtol=1e-4, atol=1e-2)
        if estimator in MEDIAN:  # exact in floating point, so the choice among ties is the same as well
            assert torch.equal(kept, kept_after)

    @given(batches())
    def test_better_rewards_never_have_smaller_advantages(self, batch):
        rewards, estimator, num_generations = batch
        advantages, _, _ = estimate(rewards, estimator, num_generations)
        better = rewards[:, :, None] > rewards[:, None, :]  # false wherever either is unscorable
        assert (advantages[:, :, None] >= advantages[:, None, :])[better].all()

    @given(batches())
    def test_what_is_dropped_deviates_least(self, batch):
        rewards, estimator, num_generations = batch
        _, keep, _ = estimate(rewards, estimator, num_generations)
        deviations = (rewards - ESTIMATORS[estimator].centre(rewards)).abs().nan_to_num(nan=-1.0)
        dropped = deviations.masked_fill(keep, -torch.inf).amax(dim=1)
        kept = deviations.masked_fill(~keep, torch.inf).amin(dim=1)
        assert (dropped <= kept).all()

    @given(batches().filter(lambda batch: batch[1] in MEDIAN and batch[2] % 2 == 0))
    def test_a_dropped_pivot_has_no_advantage(self, batch):
        """True of every odd group, ties or not, and of a group whose dropped rollout was unscorable."""
        advantages, keep, _ = estimate(*batch)
        assert (advantages[~keep] == 0).all()

    @settings(max_examples=200)
    @given(batches().filter(lambda batch: batch[1] in MEDIAN))
    def test_median_agrees_with_the_standard_library(self, batch):
        for row, found in zip(batch[0].tolist(), median(batch[0])[:, 0].tolist(), strict=True):
            scorable = [reward for reward in row if not math.isnan(reward)]
            assert math.isnan(found) if not scorable else found == statistics.median(scorable)


class TestAgainstTRL:
    @given(batches().filter(lambda batch: batch[1] in ("mean", "mean-std")))
    def test_bit_for_bit(self, batch):
        """The lines of GRPOTrainer (1.16) that make advantages, on the same rewards."""
        from trl.trainer.utils import nanstd

        rewards, estimator, size = batch
        flat = rewards.flatten()
        expected = flat - torch.nanmean(flat.view(-1, size), dim=1).repeat_interleave(size, dim=0)
        if estimator == "mean-std":
            expected = expected / (nanstd(flat.view(-1, size), dim=1).repeat_interleave(size, dim=0) + 1e-4)
        found, _, _ = estimate(rewards, estimator, size)
        assert torch.equal(found.flatten(), torch.nan_to_num(expected, nan=0.0))


class TestAppendix:
    """Section D of the paper: without the KL term, dropping the pivot leaves the gradient as it is."""

    @staticmethod
    def gradient(logits, old_logits, tokens, advantages, rows, num_generations, epsilon=0.2):
        """The clipped surrogate's gradient (Eq. 5) over `rows` of one group; completions of `tokens` of equal length.

        logits: (rows, length, vocabulary), the policy's parameters themselves.
        """
        logits = logits.clone().requires_grad_()

        def logprobs(of):
            return of.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]

        ratio = (logprobs(logits) - logprobs(old_logits)).exp()
        weighted = advantages[:, None]
        surrogate = torch.min(ratio * weighted, ratio.clamp(1 - epsilon, 1 + epsilon) * weighted)
        (surrogate.mean(dim=1)[rows].sum() / num_generations).backward()
        return logits.grad

    @pytest.mark.parametrize("estimator", MEDIAN)
    @pytest.mark.parametrize("num_generations", [2, 4, 8])
    def test_dropping_the_pivot_leaves_the_gradient_unchanged(self, estimator, num_generations):
        generator = torch.Generator().manual_seed(num_generations)
        drawn = num_generations + 1
        for levels in ([0.0, 2.0], [0.0, 1.5, 2.0], [0.0, 1.0, 1.5, 2.5, 2.0, 3.0]):
            choice = torch.randint(len(levels), (drawn,), generator=generator)
            rewards = torch.tensor(levels)[choice]
            advantages, keep, _ = estimate(rewards[None], estimator, num_generations, epsilon=0.1)
            old = torch.randn(drawn, 5, 7, generator=generator, dtype=torch.float64)
            new = old + 0.3 * torch.randn(old.shape, generator=generator, dtype=torch.float64)
            tokens = torch.randint(7, (drawn, 5), generator=generator)
            every = torch.ones(drawn, dtype=torch.bool)
            full, kept = (
                self.gradient(new, old, tokens, advantages[0].double(), rows, num_generations)
                for rows in (every, keep[0])
            )
            assert torch.equal(full, kept)

    def test_the_control_is_no_such_case(self):
        """GRPO+1 drops a row that has an advantage: there the gradient does change, so the test above can fail."""
        rewards = torch.tensor([[0.0, 1.5, 2.0]])
        advantages, keep, _ = estimate(rewards, "mean-std-plus1", 2)
        logits = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        tokens = torch.zeros(3, 5, dtype=torch.long)
        full, kept = (
            self.gradient(logits, logits, tokens, advantages[0].double(), rows, 2)
            for rows in (torch.ones(3, dtype=torch.bool), keep[0])
        )
        assert not torch.allclose(full, kept)


def test_estimators_need_torch_only():
    """A person who wants one estimator does not wait for TRL."""
    script = "import sys, mcgrpo; mcgrpo.estimate; print(*{m.split('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" in loaded
    assert not {"trl", "transformers", "datasets", "mlflow", "pandas", "snakemake"} & set(loaded)
