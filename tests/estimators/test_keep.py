"""Which rows are kept: by hand, and the largest variance against all subsets there are."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mcgrpo.estimators import Estimator, estimate
from mcgrpo.estimators.keep import keep_max_variance
from mcgrpo.estimators.statistics import mad, median

NAN = float("nan")
LEVELS = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, NAN])


class TestTies:
    def test_the_first_drawn_of_tied_pivots_goes(self):
        _, keep, _ = estimate(torch.tensor([[2.0, 0.0, 0.0, 0.0, 1.0]]), "median", 4)
        assert keep.tolist() == [[True, False, True, True, True]]

    def test_so_does_it_of_rows_that_have_an_advantage(self):
        _, keep, _ = estimate(torch.tensor([[0.0, 2.0, 0.0, 2.0]]), "mean-std-plus1", 3)
        assert keep.tolist() == [[False, True, True, True]]


class TestOwnRule:
    @pytest.fixture
    def calls(self, register):
        """What an estimator's own rule was called with; it keeps the last rows drawn."""
        calls = []

        def keep_last(*arguments):
            calls.append(arguments)
            rewards, _, num_generations = arguments
            return (torch.arange(rewards.size(1)) >= rewards.size(1) - num_generations).expand(rewards.shape)

        register("of-all", Estimator(median, mad, 1, 1.0, keep=keep_last))
        register("of-kept", Estimator(median, mad, 1, 1.0, keep=keep_last, centre_of_kept=True))
        return calls

    REWARDS = torch.tensor([[0.0, 1.0, 3.0, 5.0, NAN]])

    @pytest.mark.parametrize("estimator", ["of-all", "of-kept"])
    def test_is_called_with_rewards_their_centre_and_g(self, calls, estimator):
        _, keep, _ = estimate(self.REWARDS, estimator, 4)
        ((rewards, centre, size),) = calls
        assert rewards[0, :4].tolist() == [0.0, 1.0, 3.0, 5.0] and rewards[0, 4].isnan()
        assert centre.tolist() == [[2.0]] and size == 4
        assert keep.tolist() == [[False, True, True, True, True]]

    def test_advantages_are_about_the_centre_of_all_rows_or_of_those_kept(self, calls):
        of_all, of_kept = (estimate(self.REWARDS, name, 4)[0][0].tolist() for name in ("of-all", "of-kept"))
        assert of_all == pytest.approx([-2 / 2.5, -1 / 2.5, 1 / 2.5, 3 / 2.5, 0])  # of 0 1 3 5: median 2, MAD 1.5
        assert of_kept == pytest.approx([0, -2 / 3, 0, 2 / 3, 0])  # of 1 3 5: median 3, MAD 2


ANY = torch.zeros(1, 1)


class TestMaxVariance:
    def test_small_differences_between_large_rewards_are_seen(self):
        rewards = torch.tensor([[1.0, 5.0, 2.0, 0.0, 1.0]], dtype=torch.float64)
        assert torch.equal(keep_max_variance(rewards + 1e9, ANY, 3), keep_max_variance(rewards, ANY, 3))

    @given(arrays("float32", 7, elements=LEVELS), st.integers(1, 7))
    def test_no_other_rows_have_a_larger_variance(self, drawn, size):
        rewards = torch.from_numpy(drawn)
        scorable = rewards[~rewards.isnan()].double()
        keep = keep_max_variance(rewards[None], ANY, size)[0]
        assert keep.sum() == size
        if len(scorable) < size:
            assert keep[~rewards.isnan()].all()
            return
        best = max(torch.tensor(rows).var(correction=0) for rows in itertools.combinations(scorable.tolist(), size))
        assert rewards[keep].double().var(correction=0).item() == pytest.approx(best.item())

    def test_advantages_are_those_of_grpo_on_the_rows_that_are_kept(self):
        rewards = torch.rand(6, 12, generator=torch.Generator().manual_seed(0))
        advantages, keep, _ = estimate(rewards, "pods", 4)
        alone, _, _ = estimate(rewards[keep].view(6, 4), "mean-std", 4)
        torch.testing.assert_close(advantages[keep].view(6, 4), alone)
        assert (advantages[~keep] == 0).all()
