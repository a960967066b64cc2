"""The adapter for slime, which cannot be installed without a GPU: against a stub of slime 0.3.1 (commit 624b824).

`Sample` has the fields that the adapter touches; `train_data` and `loss` repeat how `RolloutManager` converts samples
(slime/ray/rollout.py) and the mean over rollouts (`get_sum_of_sample_mean`, `loss_function` of its Megatron backend).
"""

from argparse import Namespace
from dataclasses import dataclass

import pytest
import torch

from mcgrpo import ESTIMATORS, estimate
from mcgrpo.engines.slime import post_process_rewards

NAN = float("nan")
G, PROMPTS = 4, 2
REWARDS = torch.tensor([[0.0, 1.0, 3.0, 6.0, 10.0], [5.0, 2.0, NAN, 3.0, 9.0]])


@dataclass
class Sample:
    group_index: int
    index: int
    reward: float | dict | None
    response_length: int
    rollout_id: int | None = None
    remove_sample: bool = False
    loss_mask: list[int] | None = None

    def get_reward_value(self, args):
        return self.reward if not args.reward_key else self.reward[args.reward_key]


def args_of(drawn, batch=PROMPTS * G, **mcgrpo):
    settings = {"mcgrpo": mcgrpo} if mcgrpo else {}
    return Namespace(n_samples_per_prompt=drawn, global_batch_size=batch, reward_key=None, **settings)


def samples_of(rewards):
    size = rewards.size(1)
    return [
        Sample(row // size, 7 + row, None if reward != reward else reward, 1 + row % 3)
        for row, reward in enumerate(rewards.flatten().tolist())
    ]


def train_data(args, samples):
    """Advantage, loss mask and the denominator of each sample, and how many rollouts there are."""
    raw, advantages = post_process_rewards(args, samples)
    assert len(raw) == len(advantages) == len(samples)
    masks = [([0] if each.remove_sample else [1]) * each.response_length for each in samples]
    totals = {}
    for each, mask in zip(samples, masks, strict=True):
        totals[each.rollout_id] = totals.get(each.rollout_id, 0) + sum(mask)
    return advantages, masks, [totals[each.rollout_id] for each in samples], len(totals)


def loss(args, samples, values):
    """slime's mean over rollouts of the mean over tokens of `values`, one for each sample (a KL, say)."""
    _, masks, denominators, rollouts = train_data(args, samples)
    assert rollouts == args.global_batch_size
    means = [value * sum(mask) / max(total, 1) for value, mask, total in zip(values, masks, denominators, strict=True)]
    return sum(means) / args.global_batch_size


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_gives_in_slime_what_estimate_gives(name):
    drawn = G + ESTIMATORS[name].extra_rollouts
    rewards = torch.randint(0, 2, (PROMPTS, drawn), generator=torch.Generator().manual_seed(0)).float()
    samples = samples_of(rewards)
    _, found = post_process_rewards(args_of(drawn, estimator=name), samples)
    advantages, keep, _ = estimate(rewards, name, G)
    assert any(found) and found == (advantages * keep).flatten().tolist()
    assert [each.remove_sample for each in samples] == (~keep).flatten().tolist()


def test_the_pivot_is_in_no_loss_and_in_no_denominator():
    samples = samples_of(REWARDS)
    values = [100.0 if row in (2, 7) else 1.0 for row in range(10)]  # of the pivot, and of the one without a reward
    assert loss(args_of(G + 1), samples, values) == 1.0
    assert [row for row, each in enumerate(samples) if each.remove_sample] == [2, 7]


def test_the_parts_of_a_rollout_count_once_and_are_removed_together():
    samples = samples_of(REWARDS[:1])
    for each in samples:
        each.rollout_id = each.index
    part = Sample(0, 99, samples[2].reward, 2, rollout_id=samples[2].rollout_id)
    _, found = post_process_rewards(args_of(G + 1, batch=G), [*samples, part])
    assert part.remove_sample and found[5] == 0
    assert found[:5] == post_process_rewards(args_of(G + 1, batch=G), samples_of(REWARDS[:1]))[1]


def test_options_are_in_the_arguments():
    _, found = post_process_rewards(args_of(G + 1, estimator="median", max_advantage=2.0), samples_of(REWARDS))
    assert max(found) == 2.0 and min(found) == -2.0


def test_a_reward_is_read_by_its_key():
    samples = samples_of(REWARDS[:1])
    for each in samples:
        each.reward = {"score": each.reward}
    args = args_of(G + 1, batch=G)
    args.reward_key = "score"
    assert post_process_rewards(args, samples)[0] == REWARDS[0].tolist()


def test_a_batch_size_that_counts_dropped_rollouts_is_refused():
    with pytest.raises(ValueError, match="--global-batch-size 10 does not divide the 8 rollouts"):
        post_process_rewards(args_of(G + 1, batch=PROMPTS * (G + 1)), samples_of(REWARDS))
