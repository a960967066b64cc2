"""verl's own way to advantages, with its own batches: they are those of `estimate`."""

import pytest
import torch
from verl.trainer.ppo.ray_trainer import compute_advantage
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl_batches import batch_of, config_of

from mcgrpo import ESTIMATORS, estimate

GROUPS, G = 4, 4


def drawn_rewards(drawn):
    return torch.randint(0, 4, (GROUPS, drawn), generator=torch.Generator().manual_seed(0)) / 2


def advantages_of(data, config, keys=None):
    """(rows,): verl's advantages, which are the same at each token in the loss and 0 elsewhere."""
    algorithm = config.algorithm
    if keys is None:
        data = compute_advantage(data, algorithm.adv_estimator, config=algorithm)
    else:
        data = compute_advantage_for_multi_trajectories(data, keys, algorithm.adv_estimator, config=algorithm)
    mask, advantages = data.batch["response_mask"], data.batch["advantages"]
    assert torch.equal(data.batch["returns"], advantages)
    of_rows = advantages[:, 0]
    assert torch.equal(advantages, of_rows.unsqueeze(1) * mask)
    return of_rows


def expected(rewards, name, **options):
    advantages, keep, _ = estimate(rewards, name, G, **options)
    return advantages * keep


def uids_of(rewards):
    return [f"prompt{group}" for group in range(len(rewards)) for _ in range(rewards.size(1))]


def config_for(name, drawn, *overrides):
    names = [f"algorithm.adv_estimator=mcgrpo:{name}", f"actor_rollout_ref.rollout.n={drawn}"]
    return config_of(*names, *overrides)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_gives_in_verl_what_estimate_gives(name):
    drawn = G + ESTIMATORS[name].extra_rollouts
    rewards = drawn_rewards(drawn)
    data = batch_of(rewards.flatten(), uids_of(rewards))
    found = advantages_of(data, config_for(name, drawn))
    assert found.any() and torch.equal(found.view(rewards.shape), expected(rewards, name))


def test_the_newer_trainers_function_gives_the_same():
    rewards = drawn_rewards(G + 1)
    keys = [f"{uid}_{row}_0" for row, uid in enumerate(uids_of(rewards))]
    data = batch_of(rewards.flatten(), uids_of(rewards))
    found = advantages_of(data, config_for("median-mad", G + 1), keys)
    assert torch.equal(found.view(rewards.shape), expected(rewards, "median-mad"))


def test_options_of_estimate_are_set_on_verls_command_line():
    rewards = torch.tensor([[0.0, 1.0, 1.0, 1.0, 1.0]])
    options = ["+algorithm.mcgrpo.mad_zero=unit", "+algorithm.mcgrpo.max_advantage=0.5"]
    found = advantages_of(batch_of(rewards.flatten(), ["a"] * 5), config_for("median-mad", 5, *options))
    assert found.tolist() == [-0.5, 0.0, 0.0, 0.0, 0.0]


def test_more_rollouts_than_rollout_n_are_refused_by_name():
    with pytest.raises(ValueError, match="group 'a' has 6 rollouts"):
        advantages_of(batch_of([0.0] * 6, ["a"] * 6), config_for("median", 5))
