"""Statistics of the rewards and advantages of a batch, cheap enough to log at every step."""

import torch
from torch import Tensor

from mcgrpo.estimators.statistics import mean, median, std


def diagnose(
    rewards: Tensor, scale: Tensor | None, advantages: Tensor, keep: Tensor, *, centre: Tensor | None = None
) -> dict[str, Tensor]:
    """Statistics of a batch of groups, 0-dimensional, under the names they are logged by.

    drawn/reward: mean of all scorable rewards drawn (not only of the kept rows);
    drawn/reward_first: mean of the scorable rewards among the first G of each group, G being the rows it keeps: as many
        rollouts as a method without extra ones draws, so that it is as noisy as theirs;
    drawn/reward_std: mean within-group standard deviation of the rewards drawn;
    drawn/frac_reward_zero_std: share of groups whose rewards are all equal;
    drawn/frac_reward_differ: share of groups with two different rewards; groups with fewer than two scorable rollouts
        are in neither share;
    drawn/frac_unscorable: share of rollouts drawn that have no reward;
    drawn/centre: mean of the estimator's baseline, if `centre` is given; with the median, the authors' release logs
        this value as the reward;
    advantage/abs_max: largest |A| among kept rows;
    advantage/frac_zero: share of kept rows with A = 0;
    advantage/frac_groups_zero: share of groups in which every kept row has A = 0;
    advantage/frac_effective: effective number of kept rows, as a share of them: (sum |A|)^2 / (rows x sum A^2) (Kish
        1965); 1 if all |A| are equal, 1 / rows if one row has all of it, 0 if none has any;
    advantage/frac_scale_zero: share of groups whose scale (std, MAD) is 0 before `mad_zero` replaces it; only for
        estimators that have a scale;
    advantage/frac_scale_zero_signal: share of groups whose scale is 0 though their rewards differ, as above;
    flips/*: see `sign_flips`.
    """
    spread = std(rewards, mean(rewards))
    is_zero = (advantages == 0) & keep
    size = advantages.double().abs() * keep
    values = {
        "drawn/reward": torch.nanmean(rewards),
        "drawn/reward_first": torch.nanmean(rewards[:, : int(keep[0].sum())]),
        "drawn/reward_std": torch.nanmean(spread),
        "drawn/frac_reward_zero_std": (~differ(rewards) & ~spread.isnan()).float().mean(),
        "drawn/frac_reward_differ": differ(rewards).float().mean(),
        "drawn/frac_unscorable": torch.isnan(rewards).float().mean(),
        "advantage/abs_max": size.max(),
        "advantage/frac_zero": is_zero.sum() / keep.sum(),
        "advantage/frac_groups_zero": (is_zero | ~keep).all(dim=1).float().mean(),
        "advantage/frac_effective": (size.sum().square() / (keep.sum() * size.square().sum())).nan_to_num(nan=0.0),
    }
    if centre is not None:
        values["drawn/centre"] = torch.nanmean(centre)
    if scale is not None:
        zero = (scale == 0).expand(len(rewards), 1)
        values["advantage/frac_scale_zero"] = zero.float().mean()
        values["advantage/frac_scale_zero_signal"] = (zero & differ(rewards)).float().mean()
    return values | sign_flips(rewards)


def differ(rewards: Tensor) -> Tensor:
    """Which groups hold two different rewards; (groups, drawn) -> (groups, 1) booleans."""
    highest = torch.nan_to_num(rewards, nan=-torch.inf).amax(dim=1, keepdim=True)
    return torch.nan_to_num(rewards, nan=torch.inf).amin(dim=1, keepdim=True) < highest


def sign_flips(rewards: Tensor) -> dict[str, Tensor]:
    """How often the sign of an advantage depends on the baseline, or on one other rollout of the group.

    Shares of all scorable rollouts drawn, whatever the estimator in use; NaN for a batch without one. A sign is that of
    reward - baseline, with the baseline taken over all scorable rollouts of the group; 0 is a sign of its own.

    flips/mean_median: share with different signs under the group's mean and under its median;
    flips/loo_mean: probability that a rollout's sign changes if another scorable rollout of its group, each equally
        likely, is left out of the mean; 0 for a rollout that is alone;
    flips/loo_median: the same for the median. For a group without unscorable rollouts both are the rates of
        `mcgrpo.analyse.sign_flips` at k = drawn - 1, convention `zeros`, where the oracle is the mean (median) of those
        drawn.

    Args:
        rewards: (groups, drawn) floats, NaN where unscorable. Computed in double precision: signs are exact if rewards
            are multiples of a power of two (all of the paper's are), and equal single-precision rewards have sign 0.
    """
    rewards = rewards.double()
    scorable = ~torch.isnan(rewards)
    of_mean, of_median = torch.sign(rewards - mean(rewards)), torch.sign(rewards - median(rewards))
    alone = torch.eye(rewards.size(1), dtype=torch.bool, device=rewards.device)
    others = scorable.unsqueeze(2) & scorable.unsqueeze(1) & ~alone  # (groups, left out, rollout)
    left_out = rewards.unsqueeze(1).masked_fill(alone, torch.nan)

    def changed(whole: Tensor, centres: Tensor) -> Tensor:
        signs = torch.sign(rewards.unsqueeze(1) - centres.view(*rewards.shape, 1))
        return ((signs != whole.unsqueeze(1)) & others).sum(dim=1) / others.sum(dim=1).clamp(min=1)

    flipped = {
        "flips/mean_median": (of_mean != of_median) & scorable,
        "flips/loo_mean": changed(of_mean, mean(left_out.flatten(0, 1))),
        "flips/loo_median": changed(of_median, median(left_out.flatten(0, 1))),
    }
    return {name: share.sum() / scorable.sum() for name, share in flipped.items()}
