"""Diagnostics of a batch: sign flips by hand, against their definition, and against the exact rates of sign_flips."""

import statistics
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.estimators import estimate
from mcgrpo.estimators.diagnostics import diagnose, sign_flips

NAN = float("nan")
NAMES = ("flips/mean_median", "flips/loo_mean", "flips/loo_median")
REWARD = st.sampled_from([0.0, 0.5, 1.5, 2.0, 3.0])
BATCH = st.integers(2, 7).flatmap(
    lambda drawn: st.lists(st.lists(REWARD | st.just(NAN), min_size=drawn, max_size=drawn), min_size=1, max_size=4)
)


def flips(*groups, dtype=torch.float32):
    """The three shares of a batch, in the order of NAMES."""
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reward", [0.1, 1 / 3, 1e4])
def test_equal_rewards_have_no_sign_to_lose(reward, dtype):
    assert flips([reward] * 9, [reward] * 9, dtype=dtype) == [0, 0, 0]


def sign(value):
    return (value > 0) - (value < 0)


def by_definition(groups):
    """The three shares from their sentences, in fractions."""
    shares, rollouts = [Fraction(0)] * 3, 0
    for group in groups:
        group = [Fraction(reward) for reward in group if reward == reward]
        for i, reward in enumerate(group):
            rollouts += 1
            whole = [sign(reward - centre(group)) for centre in (statistics.mean, statistics.median)]
            shares[0] += whole[0] != whole[1]
            for j in set(range(len(group))) - {i}:
                rest = [other for place, other in enumerate(group) if place != j]
                for which, centre in enumerate((statistics.mean, statistics.median)):
                    shares[1 + which] += Fraction(sign(reward - centre(rest)) != whole[which], len(group) - 1)
    return [float(share / rollouts) for share in shares] if rollouts else [NAN] * 3


@given(BATCH)
def test_against_the_definition(groups):
    assert flips(*groups) == pytest.approx(by_definition(groups), nan_ok=True)


@pytest.mark.parametrize("estimator", ["mean-std-plus1", "median-mad", "median"])
def test_flips_are_of_the_rewards_drawn_whatever_the_estimator(estimator):
    rewards = torch.tensor([[0.0, 1.5, 2.0], [0.0, 0.0, 2.0], [0.0, NAN, 2.0]])
    _, _, found = estimate(rewards, estimator, 2)
    assert {name: found[name] for name in NAMES} == sign_flips(rewards)
    assert all(value.dim() == 0 for value in found.values())
