"""Injected sign flips: how many, where, and that nothing but the key decides."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import ESTIMATORS, compute_estimate, estimate
from mcgrpo.estimators.statistics import mad, median
from mcgrpo.trainer.flips import check_flips, draw_flips, inject_flips

NAN = float("nan")
LEVELS = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, NAN])


class TestFlips:
    KEEP = torch.tensor([[True, False, True, True, True], [True, True, True, True, False]]).repeat(500, 1)

    @pytest.mark.parametrize(("rate", "flipped"), [(0.0, 0), (0.25, 1), (0.5, 2), (1.0, 4)])
    def test_exact_is_that_many_of_the_kept_rows_of_every_group(self, rate, flipped):
        flips = draw_flips(self.KEEP, rate, "exact", "0/0/0")
        assert (flips.sum(dim=1) == flipped).all()
        assert not (flips & ~self.KEEP).any()

    def test_exact_favours_no_kept_row(self):
        share = draw_flips(self.KEEP, 0.25, "exact", "0/0/0")[::2].float().mean(dim=0)
        assert share.tolist() == pytest.approx([0.25, 0, 0.25, 0.25, 0.25], abs=0.08)  # 500 groups: 4 standard errors

    def test_bernoulli_flips_each_drawn_row_at_the_rate(self):
        flips = draw_flips(self.KEEP, 0.25, "bernoulli", "0/0/0")
        assert flips.float().mean().item() == pytest.approx(0.25, abs=0.025)  # 5000 rows: 4 standard errors
        assert flips[~self.KEEP].float().mean().item() == pytest.approx(0.25, abs=0.055)

    @pytest.mark.parametrize("rule", ["bernoulli", "exact"])
    def test_only_the_key_decides(self, rule):
        first = draw_flips(self.KEEP, 0.25, rule, "0/7/0")
        torch.manual_seed(1)
        before = torch.get_rng_state()
        assert torch.equal(first, draw_flips(self.KEEP, 0.25, rule, "0/7/0"))
        assert torch.equal(before, torch.get_rng_state())
        assert not torch.equal(first, draw_flips(self.KEEP, 0.25, rule, "7/0/0"))

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

    def test_the_share_that_is_logged_is_of_kept_rows_with_a_sign(self):
        plain = compute_estimate(torch.tensor([[0.0, 1.0, 1.0, 2.0]]), "mean", 4)
        for key in "abcde":
            flipped, share = inject_flips(plain, 0.5, "exact", key)
            assert share == (flipped.advantages != plain.advantages).sum() / 2

    def test_a_rate_that_is_whole_but_for_rounding_is_taken(self):
        check_flips(0.07, "exact", 100)  # 7.000000000000001
        check_flips(1 / 3, "exact", 3)

    @given(st.floats(0, 1), st.integers(0, 100), arrays("float32", (3, 5), elements=LEVELS))
    def test_flipping_deviations_before_scaling_equals_negating_advantages(self, rate, step, drawn):
        """The release's order: flip after centring, then divide by a scale which the flips leave as it is."""
        rewards = torch.from_numpy(drawn)
        advantages, keep, _ = estimate(rewards, "median-mad", 4)
        flips = draw_flips(keep, rate, "bernoulli", f"0/{step}/0")
        centred = rewards - median(rewards)
        flipped = torch.where(flips, -centred, centred)
        expected = flipped / (mad(flipped, torch.zeros(len(flipped), 1)) + ESTIMATORS["median-mad"].epsilon)
        assert torch.equal(torch.where(flips, -advantages, advantages), expected.nan_to_num(nan=0.0))
