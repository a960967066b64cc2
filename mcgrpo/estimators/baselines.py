"""Baselines other than the mean and the median. Unscorable rollouts (NaN) are ignored."""

from functools import partial

import torch
from torch import Tensor

from mcgrpo.estimators.statistics import mean


def leave_one_out(rewards: Tensor) -> Tensor:
    """The mean of the group's other rewards: RLOO, arXiv 2402.14740 (Kool et al., 2019).

    (groups, drawn) -> (groups, drawn); NaN where there is no other scorable rollout. reward - baseline is n / (n - 1)
    times the deviation from the mean of all n.
    """
    count = (~torch.isnan(rewards)).sum(dim=1, keepdim=True)
    others = torch.nansum(rewards, dim=1, keepdim=True) - rewards
    return torch.where(count > 1, others / (count - 1).clamp(min=1), torch.nan)


def batch_mean(rewards: Tensor) -> Tensor:
    """The mean of all rewards of the batch, whatever their prompts: REINFORCE++, arXiv 2501.03262.

    (groups, drawn) -> (1, 1). A group whose rewards are all equal is told apart from the others, so it has a signal.
    """
    return torch.nanmean(rewards).view(1, 1)


def sign_baseline(rewards: Tensor, reference: float = 0.5) -> Tensor:
    """The baselines that make every advantage the sign of reward - `reference`: arXiv 2605.07689.

    The paper's A = 2 r - 1 for rewards of 0 and 1; so it is for 0, 1.5 and 2, as no reference depends on the group.
    (groups, drawn) -> (groups, drawn).
    """
    return rewards - torch.sign(rewards - reference)


def james_stein(rewards: Tensor) -> Tensor:
    """The mean of the group's other rewards, shrunk towards the mean of the other groups: arXiv 2511.03710.

    The two-level leave-one-out estimator of the authors' code (`compute_jspo_outcome_advantage`): for rollout j of
    group i, b = (1 - lambda_i) * mean of the group without j + lambda_i * mean of the means of the other groups, with
    lambda_i = v / (v + s). v is the mean over the other groups of (variance of their rewards / their number), s the
    mean squared deviation of their means. b does not depend on the reward of its own rollout: the gradient is unbiased.

    lambda is 0 (RLOO) without another group, or if no other group has any spread. With one other group that has a
    spread it is 1, so use this estimator with many groups per batch. (groups, drawn) -> (groups, drawn).
    """
    own = leave_one_out(rewards)
    exact = rewards.double()
    count = (~torch.isnan(exact)).sum(dim=1, keepdim=True)
    means = mean(exact)
    squares = torch.nansum((exact - means) ** 2, dim=1, keepdim=True)
    noise = torch.where(count > 1, squares / (count * (count - 1)).clamp(min=1), torch.nan)
    (centre, spread), (noise, _) = _without_own(means), _without_own(noise)
    share = torch.where(noise + spread > 0, noise / (noise + spread), 0)
    shrunk = (1 - share) * own.double() + share * centre.nan_to_num(nan=0.0)
    return shrunk.to(rewards.dtype)


def _without_own(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and mean squared deviation of the other groups' values; both (groups, 1), NaN if there are none.

    Not as the sum of all less the own: where the others are 0 that leaves a rounding error, which counts as a spread.
    """
    own = torch.eye(len(values), dtype=torch.bool, device=values.device)
    others = values.T.expand_as(own).masked_fill(own, torch.nan)
    centre = torch.nanmean(others, dim=1, keepdim=True)
    return centre, torch.nanmean((others - centre) ** 2, dim=1, keepdim=True)


def quantile_of(rewards: Tensor, level: float) -> Tensor:
    """The `level` quantile of each group; (groups, drawn) -> (groups, 1), NaN for a group without a scorable rollout.

    QAE, arXiv 2509.22611, section 4.1, interpolated linearly as in its code (`torch.quantile`); 0.5 is the median.
    """
    missing = torch.isnan(rewards)
    ranked = rewards.masked_fill(missing, torch.inf).sort(dim=1).values
    count = (~missing).sum(dim=1, keepdim=True).clamp(min=1)
    rank = (count - 1).double() * level
    lower, upper = ranked.gather(1, rank.floor().long()), ranked.gather(1, rank.ceil().long())
    quantile = torch.where(lower == upper, lower, lower + (upper - lower) * (rank - rank.floor()).to(lower.dtype))
    return torch.where(missing.all(dim=1, keepdim=True), torch.nan, quantile)


quantile_04 = partial(quantile_of, level=0.4)
