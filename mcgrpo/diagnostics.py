"""What a reader needs to judge the estimates of a batch, cheap enough to log at every step; needs torch only."""

import torch
from torch import Tensor

from mcgrpo.group_statistics import mean, std


def diagnose(rewards: Tensor, scale: Tensor | None, advantages: Tensor, keep: Tensor) -> dict[str, Tensor]:
    """What a reader needs to judge an estimate, under the names it is logged by; 0-dimensional, over the batch.

    drawn/reward: mean of all scorable rewards drawn (not only of the kept rows);
    drawn/reward_std: mean within-group standard deviation of the rewards drawn;
    drawn/frac_reward_zero_std: share of groups whose rewards are all equal;
    drawn/frac_unscorable: share of rollouts drawn that have no reward;
    advantage/abs_max: largest |A| among kept rows;
    advantage/frac_zero: share of kept rows with A = 0;
    advantage/frac_groups_zero: share of groups in which every kept row has A = 0;
    advantage/frac_scale_zero: share of groups whose scale (std, MAD) is 0; only for estimators that have one.
    """
    spread = std(rewards, mean(rewards))
    is_zero = (advantages == 0) & keep
    found = {
        "drawn/reward": torch.nanmean(rewards),
        "drawn/reward_std": torch.nanmean(spread),
        "drawn/frac_reward_zero_std": torch.isclose(spread, torch.zeros_like(spread)).float().mean(),
        "drawn/frac_unscorable": torch.isnan(rewards).float().mean(),
        "advantage/abs_max": (advantages.abs() * keep).max(),
        "advantage/frac_zero": is_zero.sum() / keep.sum(),
        "advantage/frac_groups_zero": (is_zero | ~keep).all(dim=1).float().mean(),
    }
    if scale is not None:
        found["advantage/frac_scale_zero"] = (scale == 0).float().mean()
    return found
