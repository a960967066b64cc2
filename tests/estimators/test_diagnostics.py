"""Diagnostics of a batch: sign flips by hand, against their definition, and against the exact rates of sign_flips."""

import statistics
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.analyse.sign_flips import exact_rate, tally
from mcgrpo.estimators import estimate
from mcgrpo.estimators.diagnostics import diagnose, sign_flips

NAN = float("nan")
NAMES = ("flips/mean_median", "flips/mean_median_strict", "flips/loo_mean", "flips/loo_median")
REWARD = st.sampled_from([0.0, 0.5, 1.5, 2.0, 3.0])
BATCH = st.integers(2, 7).flatmap(
    lambda drawn: st.lists(st.lists(REWARD | st.just(NAN), min_size=drawn, max_size=drawn), min_size=1, max_size=4)
)


def flips(*groups, dtype=torch.float32):
    """The four shares of a batch, in the order of NAMES."""
    found = sign_flips(torch.tensor(groups, dtype=dtype))
    assert tuple(found) == NAMES
    return [value.item() for value in found.values()]


class TestEffectiveRows:
    """(sum |A|)^2 over rows x sum A^2."""

    @pytest.mark.parametrize(
        ("advantages", "expected"),
        [
            ([[1.0, -1.0], [-1.0, 1.0]], 1.0),
            ([[1.0, -1.0], [0.0, 0.0]], 0.5),
            ([[2000.0, 0.0], [0.0, 0.0]], 0.25),
            ([[3.0, -1.0], [0.0, 0.0]], 16 / 40),
            ([[0.0, 0.0], [0.0, 0.0]], 0.0),
        ],
    )
    def test_by_hand(self, advantages, expected):
        advantages = torch.tensor(advantages)
        found = diagnose(advantages, None, advantages, torch.ones_like(advantages, dtype=torch.bool))
        assert found["advantage/frac_effective"].item() == pytest.approx(expected)

    def test_rows_that_are_left_out_do_not_count(self):
        rewards = torch.tensor([[0.0, 0.0, 2.0], [0.0, 1.5, 2.0]])
        _, _, found = estimate(rewards, "median-mad", 2)  # 0, 2000 and about -3, 1
        assert found["advantage/frac_effective"].item() == pytest.approx(1 / 4, rel=0.01)

    def test_a_group_whose_mad_is_zero_carries_the_batch(self):
        rewards = torch.tensor([[0.0, 0.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.5, 2.0], [2.0, 2.0, 2.0]])
        shares = {
            mad_zero: estimate(rewards, "median-mad", 2, mad_zero=mad_zero)[2]["advantage/frac_effective"].item()
            for mad_zero in ("epsilon", "std", "unit")
        }
        assert shares["epsilon"] == pytest.approx(1 / 8, rel=0.01)
        assert shares["std"] > 0.4 and shares["unit"] > 0.4


class TestByHand:
    @pytest.mark.parametrize(
        ("group", "expected"),
        [
            # mean 2/3, median 0: both 0s differ (-, 0), the 2 does not. Without one of the 0s: mean and median 1,
            # signs - +; without the 2: 0 0. Of the mean's signs - - +, 2 of 6 change (both 0s, without the 2); of the
            # median's 0 0 +, 2 (each 0, without the other)
            ([0.0, 0.0, 2.0], [2 / 3, 0, 2 / 6, 2 / 6]),
            # mean 7/6 (- + +), median 1.5 (- 0 +): the 1.5 differs. Pairs (0 1.5), (0 2), (1.5 2): the 1.5 is + and -
            ([0.0, 1.5, 2.0], [1 / 3, 0, 1 / 6, 2 / 6]),
            # mean 2.4 (- - - - +), median 1.5 (- 0 0 + +): the 2 is below and above, both 1.5s at the median
            ([0.0, 1.5, 1.5, 2.0, 7.0], [3 / 5, 1 / 5, 3 / 20, 4 / 20]),
            # two that differ: alone, neither has a sign
            ([0.0, 2.0], [0, 0, 1, 1]),
            ([1.5, 1.5, 1.5], [0, 0, 0, 0]),
        ],
    )
    def test_one_group(self, group, expected):
        assert flips(group) == pytest.approx(expected)

    def test_shares_are_of_rollouts(self):
        # one group of (0, 0, 2) as above, one of (0, 2) and an unscorable one, a rollout alone, and none: 6 rollouts
        found = flips([0.0, 0.0, 2.0], [0.0, NAN, 2.0], [NAN, NAN, 2.0], [NAN, NAN, NAN])
        assert found == pytest.approx([2 / 6, 0, (3 * 2 / 6 + 2) / 6, (3 * 2 / 6 + 2) / 6])

    def test_nothing_scorable(self):
        assert all(value != value for value in flips([NAN, NAN], [NAN, NAN]))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("reward", [0.1, 1 / 3, 1e4])
    def test_equal_rewards_have_no_sign_to_lose(self, reward, dtype):
        assert flips([reward] * 9, [reward] * 9, dtype=dtype) == [0, 0, 0, 0]


def sign(value):
    return (value > 0) - (value < 0)


def by_definition(groups):
    """The four shares from their sentences, in fractions."""
    shares, rollouts = [Fraction(0)] * 4, 0
    for group in groups:
        group = [Fraction(reward) for reward in group if reward == reward]
        for i, reward in enumerate(group):
            rollouts += 1
            whole = [sign(reward - centre(group)) for centre in (statistics.mean, statistics.median)]
            shares[0] += whole[0] != whole[1]
            shares[1] += whole[0] * whole[1] == -1
            for j in set(range(len(group))) - {i}:
                rest = [other for place, other in enumerate(group) if place != j]
                for which, centre in enumerate((statistics.mean, statistics.median)):
                    shares[2 + which] += Fraction(sign(reward - centre(rest)) != whole[which], len(group) - 1)
    return [float(share / rollouts) for share in shares] if rollouts else [NAN] * 4


@given(BATCH)
def test_against_the_definition(groups):
    assert flips(*groups) == pytest.approx(by_definition(groups), nan_ok=True)


@given(st.lists(REWARD, min_size=3, max_size=9))
def test_leaving_one_out_is_the_exact_rate_at_one_rollout_less(group):
    for centre, found in zip(("mean", "median"), flips(group)[2:], strict=True):
        exact = exact_rate(tally(group), centre, f"oracle-{centre}", "zeros", len(group) - 1)
        assert found == pytest.approx(float(exact))


class TestDiagnose:
    def test_the_centre_is_not_the_reward(self):
        rewards = torch.tensor([[0.0, 1.5, 2.0], [2.0, 2.0, 0.0], [NAN, NAN, NAN]])
        nothing = torch.zeros_like(rewards)
        centre = torch.tensor([[1.5], [2.0], [NAN]])
        found = diagnose(rewards, None, nothing, nothing == 0, centre=centre)
        assert found["drawn/centre"].item() == 1.75
        assert found["drawn/reward"].item() == 1.25
        assert "drawn/centre" not in diagnose(rewards, None, nothing, nothing == 0)

    @pytest.mark.parametrize("estimator", ["mean-std-plus1", "median-mad", "median"])
    def test_flips_are_of_the_rewards_drawn_whatever_the_estimator(self, estimator):
        rewards = torch.tensor([[0.0, 1.5, 2.0], [0.0, 0.0, 2.0], [0.0, NAN, 2.0]])
        _, _, found = estimate(rewards, estimator, 2)
        assert {name: found[name] for name in NAMES} == sign_flips(rewards)
        assert all(value.dim() == 0 for value in found.values())
