"""Sizes of the policy's and the penalty's gradient, against autograd through TRL's own loss."""

import pytest
import torch
from tiny_training import Ours, history, trained, trainer_of
from trl import GRPOTrainer

from mcgrpo.trainer.kl_share import gradient_parts

ROWS, TOKENS = 4, 5


def batch():
    """Off policy, so that some ratios are clipped, with rows of unequal length and one without an advantage."""
    draw = torch.Generator().manual_seed(0)
    logps = torch.rand(ROWS, TOKENS, generator=draw) - 2
    columns = torch.arange(TOKENS)
    mask = (columns < torch.tensor([5, 3, 1, 4]).unsqueeze(1)).long()
    return logps, {
        "prompt_ids": torch.ones(ROWS, 2, dtype=torch.long),
        "prompt_mask": torch.ones(ROWS, 2, dtype=torch.long),
        "completion_ids": torch.ones(ROWS, TOKENS, dtype=torch.long),
        "completion_mask": mask,
        "advantages": torch.tensor([1.5, -0.5, 0.0, 2.0]),
        "old_per_token_logps": logps + 0.4 * torch.randn(ROWS, TOKENS, generator=draw),
        "ref_per_token_logps": logps + 0.3 * torch.randn(ROWS, TOKENS, generator=draw),
        "num_items_in_batch": mask.sum(),
    }


def derivative(trainer, logps, inputs):
    """Sum of the absolute derivatives of TRL's loss with respect to the log-probabilities."""
    leaf = logps.clone().requires_grad_()
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (leaf, torch.zeros_like(logps), None)
    GRPOTrainer._compute_loss(trainer, trainer.model, inputs).backward()
    return leaf.grad.abs().sum().item()


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("loss_type", ["grpo", "dapo", "dr_grpo"])
def test_the_shares_are_those_of_trls_gradient(loss_type, corrected, tmp_path):
    """Over two micro-batches, of which the second has fewer tokens and smaller advantages."""
    settings = {"loss_type": loss_type, "use_bias_correction_kl": corrected, "max_completion_length": TOKENS}
    trainer = trainer_of(Ours, tmp_path, beta=0.3, **settings)
    trainer.current_gradient_accumulation_steps = 1
    logps, inputs = batch()
    short = (torch.arange(TOKENS) < 2).long() * inputs["completion_mask"]
    tokens = inputs["completion_mask"].sum() + short.sum()
    micro_batches = [
        inputs | {"num_items_in_batch": tokens},
        inputs | {"num_items_in_batch": tokens, "completion_mask": short, "advantages": inputs["advantages"] / 10},
    ]
    penalty, policy = sum(gradient_parts(each, logps, trainer.args) for each in micro_batches).tolist()
    no_policy = {"advantages": torch.zeros(ROWS)}
    without_policy = sum(derivative(trainer, logps, each | no_policy) for each in micro_batches)
    trainer.beta = 0.0
    without_penalty = sum(derivative(trainer, logps, each) for each in micro_batches)
    assert penalty > 0 and policy > 0
    assert penalty / policy == pytest.approx(without_policy / without_penalty, rel=1e-4)


@pytest.mark.slow
def test_it_is_of_every_step_once_the_policy_has_moved_and_of_the_whole_however_it_is_divided(tmp_path):
    """Not the mean over micro-batches: one without any advantage would count as a share of 1."""
    settings = {"estimator": "median-mad", "max_grad_norm": 0.0, "learning_rate": 1e-4, "max_steps": 4}
    whole, divided, packed = (
        history(trained(Ours, tmp_path, **settings, **batches), "gradient/kl_l1_share_logps")
        for batches in (
            {"per_device_train_batch_size": 16},
            {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 8, "compact_updates": False},
            {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 8},
        )
    )
    assert len(whole) == 4 and whole[0] == 0 and all(0 < share < 1 for share in whole[1:])
    assert packed == pytest.approx(whole, rel=0.05)
    assert divided == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize(
    "settings",
    [
        {"beta": 0.0},
        {"loss_type": "cispo"},
        {"top_entropy_quantile": 0.5},
        {"off_policy_mask_threshold": 1.0},
        {"delta": 2.0},
        {"importance_sampling_level": "sequence"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_where_it_is_not_known_nothing_is_logged(settings, tmp_path):
    assert history(trained(Ours, tmp_path, max_steps=2, **settings), "gradient/kl_l1_share_logps") == []
