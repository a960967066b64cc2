"""The KL penalty's share of the gradient, in the L1 norm over the tokens' log-probabilities."""

from typing import Any

import torch
from torch import Tensor

from mcgrpo.trainer.packing import Batch, loss_mask

CLIPPED_LOSSES = ("grpo", "dr_grpo", "dapo")
"""Losses with PPO's clipped ratio of each token."""


def is_known(args: Any) -> bool:
    """Whether `gradient_parts` is exact for these arguments: no mask over tokens or rows but the completion's."""
    masked = args.top_entropy_quantile < 1 or args.off_policy_mask_threshold is not None or args.delta is not None
    return args.loss_type in CLIPPED_LOSSES and args.importance_sampling_level == "token" and not masked


def gradient_parts(batch: Batch, logps: Tensor, args: Any) -> Tensor:
    """L1 norms of the penalty's and the policy's gradient with respect to the tokens' log-probabilities: shape (2,).

    Each is the sum over tokens of the absolute derivative, weighted as the loss weights tokens (`grpo`: by the length
    of their row; `dapo`: by the tokens of their generation batch). The policy's is |A| times the ratio, 0 where it is
    clipped; the penalty's is beta |1 - exp(ref - logp)|, the derivative of TRL's estimator k3, or with
    `use_bias_correction_kl` beta * ratio * |logp - ref|.

    Args:
        batch: TRL's inputs of the loss, with `ref_per_token_logps`.
        logps: (rows, tokens), without a graph.
        args: an `MCGRPOConfig` for which `is_known` is true.
    """
    mask = loss_mask(batch)
    advantages = batch["advantages"].unsqueeze(1)
    ratio = torch.exp(logps - batch.get("old_per_token_logps", logps))
    high = 1 + (args.epsilon if args.epsilon_high is None else args.epsilon_high)
    clipped = ((advantages > 0) & (ratio > high)) | ((advantages < 0) & (ratio < 1 - args.epsilon))
    policy = advantages.abs() * ratio * ~clipped * batch.get("importance_sampling_ratio", 1.0)
    ref = batch["ref_per_token_logps"]
    penalty = ratio * (logps - ref).abs() if args.use_bias_correction_kl else (1 - torch.exp(ref - logps)).abs()
    weights = mask / mask.sum(dim=1, keepdim=True).clamp(min=1) if args.loss_type == "grpo" else mask
    if args.loss_type == "dapo":  # an optimizer step may have micro-batches of several generation batches
        weights = weights / batch["num_items_in_batch"].clamp(min=1)
    return torch.stack([(args.beta * penalty * weights).sum(), (policy * weights).sum()])
