"""What an estimator's functions return is checked, as they may be user-defined; and rewards are constants."""

import itertools

import pytest
import torch
from reward_batches import NOT_OF_ITS_GROUP

from mcgrpo.estimators import ESTIMATORS, Estimator, estimate
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


ROUNDED = [*itertools.product([0.35, 0.7, 1000.1], [3, 7, 8])]
"""Rewards and sizes of groups: the mean of most of these groups is another number than the reward."""


@pytest.mark.parametrize(
    ("name", "epsilon"),
    sorted({*itertools.product(set(ESTIMATORS) - {"sign"}, [None, 0.0])} - {("mean-std", None)}, key=str),
)
def test_equal_rewards_whose_mean_is_rounded_have_no_advantage(name, epsilon):
    """Those of a group, whatever the others, or of a batch for estimators that compare groups."""
    for level, size in ROUNDED:
        rewards = torch.full((3, size + ESTIMATORS[name].extra_rollouts), level)
        rewards[1, 1] = torch.nan
        if name not in NOT_OF_ITS_GROUP:
            rewards[2] *= torch.arange(rewards.size(1)) % size
        advantages, _, diagnostics = estimate(rewards, name, size, epsilon=epsilon)
        assert not advantages[:2].any()
        assert diagnostics["drawn/frac_reward_zero_std"] == pytest.approx(1 if name in NOT_OF_ITS_GROUP else 2 / 3)


def test_mean_std_rounds_as_trl_does():
    from trl.trainer.utils import nanstd

    for level, size in ROUNDED:
        rewards = torch.full((1, size), level)
        expected = (rewards - torch.nanmean(rewards, dim=1)) / (nanstd(rewards, dim=1) + 1e-4)
        assert torch.equal(estimate(rewards, "mean-std", size)[0], expected)
    assert expected.abs().max() > 0.3  # 1000.1, eight times


def test_equal_rewards_that_are_no_rounding_error_from_the_centre_keep_their_advantage():
    advantages, *_ = estimate(torch.tensor([[1.0, 1.0], [0.0, 0.0]]), "batch-mean", 2, epsilon=0.0)
    assert advantages.sign().tolist() == [[1.0, 1.0], [-1.0, -1.0]]


def test_rewards_are_constants():
    rewards = SQUARE.clone().requires_grad_()
    advantages, _, diagnostics = estimate(rewards, "mean-std", 3)
    assert not advantages.requires_grad and not any(value.requires_grad for value in diagnostics.values())
