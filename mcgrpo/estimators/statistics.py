"""Location and scale of each group of rewards. Unscorable rollouts (NaN) are ignored."""

import torch
from torch import Tensor


def mean(rewards: Tensor) -> Tensor:
    """Mean of each group; (groups, drawn) -> (groups, 1)."""
    return torch.nanmean(rewards, dim=1, keepdim=True)


def median(rewards: Tensor) -> Tensor:
    """Median of each group; for an even number of scorable rollouts, the mean of the two middle ones.

    (groups, drawn) -> (groups, 1); NaN for a group without a scorable rollout. torch.nanmedian would take the lower of
    the two middle ones, which biases the baseline of every group that lost one rollout.
    """
    missing = torch.isnan(rewards)
    ranked = torch.where(missing, torch.inf, rewards).sort(dim=1).values
    count = (~missing).sum(dim=1, keepdim=True)
    lower = ranked.gather(1, (count - 1).clamp(min=0) // 2)
    upper = ranked.gather(1, (count // 2).clamp(max=rewards.size(1) - 1))
    middle = torch.where(lower == upper, lower, (lower + upper) / 2)
    return torch.where(count > 0, middle, torch.nan)


def std(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of each group with Bessel's correction, by the same operations as TRL's `nanstd`.

    (groups, drawn) and (groups, 1) -> (groups, 1); NaN for a group with fewer than two scorable rollouts.
    """
    variance = torch.nanmean((rewards - centre) ** 2, dim=1, keepdim=True)
    count = (~torch.isnan(rewards)).sum(dim=1, keepdim=True)
    correction = count / (count - 1)
    return torch.sqrt(variance * torch.where(count > 1, correction, torch.nan))


def mad(rewards: Tensor, centre: Tensor) -> Tensor:
    """Median absolute deviation from `centre`, not rescaled to a normal's sigma (MC-GRPO, Eq. 4).

    (groups, drawn) and (groups, 1) -> (groups, 1).
    """
    return median((rewards - centre).abs())
