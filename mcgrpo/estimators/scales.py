"""Scales other than those about a centre: about the mean, over the whole batch, or of a fitted distribution."""

import torch
from torch import Tensor

from mcgrpo.estimators.statistics import mean, std


def spread(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of each group about its mean, whatever the centre; with Bessel's correction.

    The scale of QAE, arXiv 2509.22611; `statistics.std` is about the centre that it is given.
    (groups, drawn) -> (groups, 1); NaN for a group with fewer than two scorable rollouts.
    """
    return std(rewards, mean(rewards))


def batch_std(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of all rewards of the batch: TRL's `scale_rewards="batch"` (arXiv 2508.08221).

    (groups, drawn) -> (1, 1), with Bessel's correction, by the operations of TRL's `nanstd`; `centre` is not used.
    """
    return spread(rewards.reshape(1, -1), centre)


def batch_deviation(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of all centred rewards of the batch: REINFORCE++ with a group baseline, arXiv 2501.03262.

    (groups, drawn) -> (1, 1), with Bessel's correction. The mean that the paper subtracts is 0 for centred rewards.
    Each rollout counts once; verl weights it by its tokens (`compute_reinforce_plus_plus_baseline_outcome_advantage`).
    """
    return batch_std(rewards - centre, centre)


def positive_mean(rewards: Tensor, centre: Tensor) -> Tensor:
    """The mean of each group: MaxRL, arXiv 2602.02710, whose gradient is that of log P(success) as the group grows.

    A = (r - mean) / mean, so a prompt that succeeds with probability p counts 1 / p times as much as without a scale.
    (groups, drawn) -> (groups, 1); `centre` is not used.

    Raises:
        ValueError: naming a negative reward: the mean of a group could be 0 or less though its rewards differ.
    """
    if (rewards < 0).any():
        raise ValueError(
            f"advantages divided by the mean reward (MaxRL) need rewards of at least 0; these hold "
            f"{rewards[rewards < 0][0].item():g}. Use such rewards, or another estimator"
        )
    return mean(rewards)


def beta_density(
    rewards: Tensor, centre: Tensor, alpha: float | None = None, beta: float | None = None, high: float = 1.0
) -> Tensor:
    """The density of a Beta distribution, fitted to the batch, at each group's success rate p: BNPO, arXiv 2506.02864.

    A = (r - p) / f(p; alpha, beta) with the alpha = 1 + a/3 and beta = 1 + b/3 of least variance, for the Beta(a, b)
    that has the mean and variance of p over the groups; both at least 1, as in the authors' code. alpha = beta = 1 is
    REINFORCE with a mean baseline, 3/2 is GRPO up to a factor. If all groups have the same p, both are 1.

    Args:
        rewards: (groups, drawn), 0 or `high`, NaN where unscorable.
        centre: (groups, 1), the means of the rewards.
        alpha, beta: replace the fitted values.
        high: the reward of a success.

    Returns:
        (groups, 1).

    Raises:
        ValueError: naming rewards that are neither 0 nor `high`.
    """
    odd = rewards[~torch.isnan(rewards) & (rewards != 0) & (rewards != high)]
    if odd.numel():
        values = ", ".join(f"{value:g}" for value in odd.unique()[:5].tolist())
        raise ValueError(
            f"Beta-normalised advantages (BNPO) need binary rewards, 0 or {high:g}; these hold {values} too. Use these "
            "two rewards only, or another estimator"
        )
    share = (centre / high).double()
    fitted = zip((alpha, beta), _fitted(share[~torch.isnan(share)]), strict=True)
    a, b = (fit if given is None else torch.as_tensor(given).to(share) for given, fit in fitted)
    norm = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    return (torch.xlogy(a - 1, share) + torch.xlogy(b - 1, 1 - share) - norm).exp().to(rewards.dtype)


def _fitted(share: Tensor) -> tuple[Tensor, Tensor]:
    """BNPO's alpha and beta, from the mean and variance of the groups' success rates."""
    one = torch.ones((), dtype=share.dtype, device=share.device)
    if share.numel() < 2:
        return one, one
    mean, variance = share.mean(), share.var()
    size = mean * (1 - mean) / variance - 1  # a + b
    size = torch.where(variance > 0, size, 0)
    return (1 + size * mean / 3).clamp(min=1), (1 + size * (1 - mean) / 3).clamp(min=1)
