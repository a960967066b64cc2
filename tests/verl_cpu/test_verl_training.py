"""Trainings through the whole of verl's own trainer: with the median, the pivot is in nothing that they compute."""

import pytest
import torch
from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
from verl_training import Ours, Verls, cluster, trained

from mcgrpo import estimate
from mcgrpo.data.toy.models import build

NAN = float("nan")
G = 4
MODEL = {"architecture": "qwen3", "hidden_size": 64, "layers": 1, "heads": 2, "intermediate_size": 64, "seed": 1}
# of each step and prompt; one rollout has no reward, and the last group has lost two rollouts
REWARDS = [[[0.0, 1.0, 3.0, 6.0, 10.0], [5.0, 2.0, NAN, 3.0, 9.0]], [[1.0, 2.0, 0.0, 5.0, 7.0], [4.0, 0.0, 1.0]]]
TOKENS = [[9], [10, 11], [12, 13, 14, 15, 16, 17], [18, 19], [20, 21, 22]]


def drawn(step, prompt):
    """Completions and rewards of a group; one of its rollouts has two outputs, as agent loops may have."""
    group = [([tokens[: 6 - prompt]], reward) for tokens, reward in zip(TOKENS, REWARDS[step][prompt], strict=False)]
    group[0][0].append([23, 24])
    return group


def kept(step, prompt):
    """Of the same group, the completions that are trained on, with their advantages in place of rewards."""
    group = drawn(step, prompt)
    rewards = torch.tensor([[reward for _, reward in group] + [NAN] * (G + 1 - len(group))])
    advantages, keep, _ = estimate(rewards, "median-mad", G)
    of_rows = zip(group, advantages[0].tolist(), keep[0].tolist(), strict=False)
    return [(outputs, advantage) for (outputs, _), advantage, stays in of_rows if stays]


def given(token_level_rewards, response_mask, **_):
    advantages = token_level_rewards.sum(dim=1, keepdim=True) * response_mask
    return advantages, advantages


ADV_ESTIMATOR_REGISTRY["given"] = given
MEDIAN = ["algorithm.adv_estimator=mcgrpo:median-mad", f"actor_rollout_ref.rollout.n={G + 1}"]
GIVEN = ["algorithm.adv_estimator=given", f"actor_rollout_ref.rollout.n={G}"]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    home = tmp_path_factory.mktemp("verl")
    build(MODEL, home / "model")
    cluster()
    done = {}

    def once(kind, rollouts_of, settings, mode):
        key = f"{kind.__name__}-{rollouts_of.__name__}-{mode}"
        if key not in done:
            rollouts = [[rollouts_of(step, prompt) for prompt in (0, 1)] for step in (0, 1)]
            aggregate = f"actor_rollout_ref.actor.loss_agg_mode={mode}"
            done[key] = trained(kind, home / key, home / "model", rollouts, aggregate, *settings)
        return done[key]

    return once


COMPARED = ("actor/pg_loss", "actor/kl_loss", "actor/grad_norm", "actor/entropy", "global_seqlen/max")


@pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-mean"])
def test_a_training_is_that_of_a_batch_that_never_had_the_dropped_rollouts(train, mode):
    metrics, weights, left = train(Ours, drawn, MEDIAN, mode)
    expected, same_weights, _ = train(Verls, kept, GIVEN, mode)
    for ours, theirs in zip(metrics, expected, strict=True):
        assert {name: ours[name] for name in COMPARED} == pytest.approx({name: theirs[name] for name in COMPARED})
    assert metrics[1]["actor/kl_loss"] > 0 and metrics[0]["actor/grad_norm"] > 0
    for name, weight in weights.items():
        torch.testing.assert_close(weight, same_weights[name], rtol=0, atol=1e-5, msg=name)
    assert not left


def test_what_was_drawn_is_logged(train):
    (first, second), _, _ = train(Ours, drawn, MEDIAN, "token-mean")
    assert first["drawn/reward"] == pytest.approx(39 / 9) and first["drawn/frac_unscorable"] == pytest.approx(0.1)
    assert second["drawn/frac_unscorable"] == pytest.approx(0.2)
