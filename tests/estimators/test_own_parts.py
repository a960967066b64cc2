"""What an estimator's functions return is checked, as they may be somebody's own; and rewards are constants."""

import pytest
import torch

from mcgrpo.estimators import ESTIMATORS, Estimator, estimate, get_estimator
from mcgrpo.estimators.baselines import mean
from mcgrpo.estimators.scales import std

SQUARE = torch.tensor([[0.0, 1.0, 2.0], [3.0, 5.0, 7.0], [1.0, 1.0, 4.0]])


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            Estimator(lambda rewards: rewards.nanmean(dim=1)),
            r"the centre of .* shape \(3, 1\), not of shape \(3,\): is",
        ),
        (Estimator(lambda rewards: 0.5), r"the centre of .* should be a tensor of shape \(3, 1\), not 0.5"),
        (
            Estimator(mean, lambda rewards, centre: std(rewards, centre).flatten()),
            r"the scale of .*, not of shape \(3,\)",
        ),
        (Estimator(mean, keep=lambda rewards, *_: rewards > 1), "the keep rule of .* exactly 3 of them true in each"),
        (Estimator(mean, keep=lambda rewards, *_: rewards * 0 + 1), r"booleans of shape \(3, 3\)"),
    ],
)
def test_a_function_that_would_mix_groups_is_named(monkeypatch, own, message):
    """Silently, where there are as many groups as rollouts."""
    monkeypatch.setitem(ESTIMATORS, "own", own)
    with pytest.raises(ValueError, match=message):
        estimate(SQUARE, "own", 3)


@pytest.mark.parametrize("name", [ESTIMATORS["median-mad"], None])
def test_an_estimator_is_given_by_its_name(name):
    with pytest.raises(ValueError, match=r"is given by its name, not .*: register\(name, estimator\)"):
        get_estimator(name)


@pytest.mark.parametrize("name", ["mean-std", "mean-mad", "mean-std-plus1", "pods", "batch-std", "mean"])
def test_equal_rewards_whose_mean_is_rounded_give_nothing_without_an_epsilon(name):
    rewards = torch.full((2, 8 + ESTIMATORS[name].extra_rollouts), 0.7)
    advantages, _, diagnostics = estimate(rewards, name, 8, epsilon=0.0)
    assert not advantages.any() and diagnostics["drawn/frac_reward_zero_std"] == 1


def test_equal_rewards_that_are_no_rounding_error_from_the_centre_keep_their_advantage():
    advantages, *_ = estimate(torch.tensor([[1.0, 1.0], [0.0, 0.0]]), "batch-mean", 2, epsilon=0.0)
    assert advantages.sign().tolist() == [[1.0, 1.0], [-1.0, -1.0]]


def test_rewards_are_constants():
    rewards = SQUARE.clone().requires_grad_()
    advantages, _, diagnostics = estimate(rewards, "mean-std", 3)
    assert not advantages.requires_grad and not any(value.requires_grad for value in diagnostics.values())
