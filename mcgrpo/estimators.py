"""Advantage estimators: the rewards of a batch of groups in, advantages and the rows to train on out.

An estimator is a centre, a scale and a number of extra rollouts. All are pure functions of a float tensor `rewards`
of shape (groups, drawn) in which NaN marks an unscorable rollout; needs torch only.

One rule decides which rows are kept: of the `drawn` rollouts of each group, the extra ones are dropped in this order:
unscorable rollouts, then those of the smallest |reward - centre|, and among equals the one drawn first. For the
median of an odd group the dropped row is therefore the pivot (advantage exactly 0); under ties, which are the rule
with discrete rewards, it is the first of the tied medians: with beta = 0 every choice among them gives the same
gradient; with beta > 0 the dropped row takes its KL term along, so the choice has to be a fixed one. An even group,
from an odd G, has no pivot: its baseline lies between two rewards, and the dropped row has an advantage.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Centre = Callable[[Tensor], Tensor]
Scale = Callable[[Tensor, Tensor], Tensor]


def mean(rewards: Tensor) -> Tensor:
    """Mean of each group, unscorable rollouts left out; (groups, drawn) -> (groups, 1)."""
    return torch.nanmean(rewards, dim=1, keepdim=True)


def median(rewards: Tensor) -> Tensor:
    """Median of each group, unscorable rollouts left out; the mean of the two middle ones where their number is even.

    (groups, drawn) -> (groups, 1); NaN for a group without a scorable rollout. (torch.nanmedian takes the lower of
    the two middle ones, which would bias the baseline of every group that lost one rollout.)
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


@dataclass(frozen=True)
class Estimator:
    """How rewards become advantages: (reward - centre) / (scale + epsilon), drawn with `extra_rollouts` a group.

    `scale` None leaves the centred rewards as they are. `epsilon` has the unit of the rewards.
    """

    centre: Centre
    scale: Scale | None
    extra_rollouts: int
    epsilon: float
    source: str


ESTIMATORS: dict[str, Estimator] = {
    "mean-std": Estimator(mean, std, 0, 1e-4, "GRPO, arXiv 2402.03300; epsilon as in TRL's GRPOTrainer"),
    "mean": Estimator(mean, None, 0, 0.0, "Dr. GRPO, arXiv 2503.20783: no division by the standard deviation"),
    "median-mad": Estimator(median, mad, 1, 1e-3, "MC-GRPO, Eqs. 2-4; epsilon as in the authors' release"),
    "median": Estimator(median, None, 1, 0.0, "MC-GRPO, Eq. 2 in Dr. GRPO: no normalisation (appendix A)"),
    "mean-std-plus1": Estimator(mean, std, 1, 1e-4, "MC-GRPO, extra-sampling control: smallest |A| dropped"),
}


def get_estimator(name: str) -> Estimator:
    """The estimator of that name.

    Raises:
        ValueError: naming those there are.
    """
    try:
        return ESTIMATORS[name]
    except KeyError:
        raise ValueError(f"unknown estimator {name!r}; there are: {', '.join(ESTIMATORS)}") from None


def estimate(
    rewards: Tensor, estimator: str, num_generations: int, epsilon: float | None = None
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Advantages of a batch of groups, and which rows of each group reach the update.

    Args:
        rewards: (groups, drawn) floats, a group per row, `drawn` = num_generations + the estimator's extra rollouts;
            NaN where a rollout could not be scored.
        estimator: a name in `ESTIMATORS`.
        num_generations: G, the rows of each group that are kept.
        epsilon: replaces the estimator's own.

    Returns:
        advantages: (groups, drawn), in the dtype of rewards; exactly 0 for unscorable rollouts.
        keep: (groups, drawn) booleans, exactly G of them true in each group.
        diagnostics: scalars over the batch (see `diagnose`).

    Raises:
        ValueError: for an unknown estimator, a shape that does not fit G, or an infinite reward.
    """
    rule = get_estimator(estimator)
    _check(rewards, estimator, rule, num_generations)
    epsilon = rule.epsilon if epsilon is None else epsilon
    centre = rule.centre(rewards)
    scale = None if rule.scale is None else rule.scale(rewards, centre)
    deviations = rewards - centre
    advantages = deviations if scale is None else deviations / (scale + epsilon)
    advantages = torch.nan_to_num(advantages, nan=0.0)
    keep = keep_largest(deviations, num_generations)
    return advantages, keep, diagnose(rewards, scale, advantages, keep)


def _check(rewards: Tensor, name: str, rule: Estimator, num_generations: int) -> None:
    if rewards.dim() != 2 or not rewards.is_floating_point():
        raise ValueError(
            f"rewards should be floats of shape (groups, drawn), not {rewards.dtype} of shape {tuple(rewards.shape)}"
        )
    drawn = num_generations + rule.extra_rollouts
    if num_generations < 2 or rewards.size(1) != drawn:
        raise ValueError(
            f"estimator {name!r} with num_generations={num_generations} needs {num_generations} + "
            f"{rule.extra_rollouts} = {drawn} rollouts a group (and num_generations at least 2), "
            f"but rewards has shape {tuple(rewards.shape)}"
        )
    if torch.isinf(rewards).any():
        raise ValueError("rewards hold an infinite value; return None (NaN) for a rollout that cannot be scored")


def keep_largest(deviations: Tensor, num_generations: int) -> Tensor:
    """Which rows to train on: all but the unscorable, then the least deviating, then the first drawn.

    (groups, drawn) deviations from the centre, NaN where unscorable -> (groups, drawn) booleans, G true in each row.
    """
    size = torch.nan_to_num(deviations.abs(), nan=-1.0)
    order = size.argsort(dim=1, stable=True)
    keep = torch.ones_like(size, dtype=torch.bool)
    return keep.scatter(1, order[:, : size.size(1) - num_generations], False)


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
