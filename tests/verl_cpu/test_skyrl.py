"""The adapter in a real SkyRL: the methods of its own trainer, with its own configuration and batches."""

import typing
from types import SimpleNamespace

import pytest
import torch
import typing_extensions

typing.TypedDict = typing_extensions.TypedDict  # what pydantic needs of SkyRL before Python 3.12
from skyrl.backends.skyrl_train.utils import ppo_utils  # noqa: E402
from skyrl.train.config import SkyRLTrainConfig  # noqa: E402
from skyrl.train.trainer import RayPPOTrainer  # noqa: E402

from mcgrpo import ESTIMATORS, estimate  # noqa: E402
from mcgrpo.engines import skyrl  # noqa: E402

PROMPTS, G = 2, 4
REWARDS = torch.tensor([[0.0, 1.0, 3.0, 6.0, 10.0], [5.0, 2.0, float("nan"), 3.0, 9.0]])
TOKENIZER = SimpleNamespace(pad_token_id=0)


class Ours(skyrl.WithoutDropped, RayPPOTrainer):
    """SkyRL's trainer without dropped rollouts."""


def trainer_of(kind, drawn, **algorithm):
    cfg = SkyRLTrainConfig()
    cfg.trainer.train_batch_size = cfg.trainer.policy_mini_batch_size = PROMPTS
    cfg.generator.n_samples_per_prompt = drawn
    cfg.generator.inference_engine.enable_ray_prometheus_stats = cfg.trainer.enable_ray_gpu_monitor = False
    cfg.trainer.critic.model.path = None
    for name, value in {"advantage_estimator": "mcgrpo:median", **algorithm}.items():
        setattr(cfg.trainer.algorithm, name, value)
    trainer = kind(cfg, None, TOKENIZER, None, None, None)
    trainer.dispatch = SimpleNamespace(get_lcm_dp_size=lambda: 3)  # so that SkyRL adds padding
    return trainer


def output_of(rewards, lengths):
    """What SkyRL's generator returns and its postprocessing makes of it: the reward at the last token."""
    rows = list(zip(rewards.flatten().tolist(), lengths, strict=True))
    return {
        "prompt_token_ids": [[1, 2] for _ in rows],
        "response_ids": [[3 + row] * length for row, (_, length) in enumerate(rows)],
        "rewards": [[0.0] * (length - 1) + [reward] for reward, length in rows],
        "loss_masks": [[1] * length for _, length in rows],
        "rollout_logprobs": None,
    }


def trained_on(trainer, rewards=REWARDS):
    """SkyRL's batch just before the update: what the loss sums, and which rows it has."""
    lengths = [1 + row % 3 for row in range(rewards.numel())]
    uids = [f"prompt{group}" for group in range(len(rewards)) for _ in range(rewards.size(1))]
    data = trainer.convert_to_training_input(output_of(rewards, lengths), uids)
    data["values"] = None
    data = trainer.compute_advantages_and_returns(data)
    boundaries, prompts = (data.metadata[f"policy_{of}_boundaries"] for of in ("mini_batch", "prompt"))
    return trainer._normalize_advantages(data, boundaries, prompts)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_gives_in_skyrl_what_estimate_gives(name):
    drawn = G + ESTIMATORS[name].extra_rollouts
    rewards = torch.randint(0, 2, (3, drawn), generator=torch.Generator().manual_seed(0)).float()
    mask = (torch.arange(5) <= torch.arange(rewards.numel()).unsqueeze(1) % 5).float()
    tokens = torch.zeros(mask.shape)
    tokens[:, 0] = rewards.flatten()
    uids = [f"prompt{group}" for group in range(3) for _ in range(drawn)]
    algorithm = SkyRLTrainConfig().trainer.algorithm
    found, returns = ppo_utils.compute_advantages_and_returns(tokens, mask, uids, f"mcgrpo:{name}", algorithm)
    advantages, keep, _ = estimate(rewards, name, G)
    assert found.any() and torch.equal(found, returns)
    assert torch.equal(found, (advantages * keep).view(-1, 1) * mask)


@pytest.mark.parametrize("reduction", ["token_mean", "sequence_mean", "seq_mean_token_sum_norm", "prompt_mean"])
def test_dropped_rollouts_are_out_of_the_batch_and_of_every_denominator(reduction):
    options = {"loss_reduction": reduction, "max_seq_len": 8}
    trainer = trainer_of(Ours, G + 1, **options)
    ours = trained_on(trainer)
    kept_and_padding = [3, 4, 6, 7, 8, 9, 11, 12, 3]  # without 5, the pivot, and 10, which has no reward
    assert ours["sequences"].amax(dim=1).tolist() == kept_and_padding
    # the same trainer of SkyRL, given the kept rollouts alone and their advantages
    advantages, keep, _ = estimate(REWARDS, "median", G)
    rows = keep.flatten().nonzero().flatten().tolist()
    everything = output_of(REWARDS, [1 + row % 3 for row in range(REWARDS.numel())])
    kept = {name: values and [values[row] for row in rows] for name, values in everything.items()}
    plain = trainer_of(RayPPOTrainer, G, advantage_estimator="mcgrpo:given", **options)
    data = plain.convert_to_training_input(kept, [f"prompt{row // 5}" for row in rows])
    data["advantages"] = torch.cat([advantages[keep], torch.zeros(1)]).unsqueeze(1) * data["response_mask"]
    boundaries, prompts = (data.metadata[f"policy_{of}_boundaries"] for of in ("mini_batch", "prompt"))
    expected = plain._normalize_advantages(data, boundaries, prompts)
    assert ours["advantages"].any() and torch.equal(ours["advantages"], expected["advantages"])
    assert torch.equal(ours["loss_mask"], expected["loss_mask"])
    assert trainer.cfg.generator.n_samples_per_prompt == G + 1


def test_options_are_registered_with_a_name():
    skyrl.register("bounded", "median", max_advantage=2.0)
    trainer = trainer_of(Ours, G + 1, advantage_estimator="mcgrpo:bounded", loss_reduction="seq_mean_token_sum_norm")
    trainer.cfg.trainer.algorithm.max_seq_len = 1
    assert trained_on(trainer)["advantages"].max() * PROMPTS * G == 2.0


@pytest.mark.parametrize("setting", [{"advantage_estimator": "grpo"}, {"use_kl_in_reward": True}])
def test_what_would_undo_the_drop_is_refused(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        trainer_of(Ours, G + 1, **setting)
