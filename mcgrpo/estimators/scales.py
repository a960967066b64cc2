"""Scales beside those about a centre: about the mean, over the whole batch, or of a distribution fitted to it."""

import torch
from torch import Tensor

from mcgrpo.estimators.statistics import mean, std


def spread(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of each group about its mean, whatever the centre; with Bessel's correction.

    What QAE (arXiv 2509.22611) divides by, where `group_statistics.std` is about the centre it is given.
    (groups, drawn) -> (groups, 1); NaN for a group with fewer than two scorable rollouts.
    """
    return std(rewards, mean(rewards))


def batch_std(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of all rewards of the batch: TRL's `scale_rewards="batch"` (arXiv 2508.08221).

    (groups, drawn) -> (1, 1), with Bessel's correction, by the operations of TRL's `nanstd`; `centre` does not matter.
    """
    flat = rewards.reshape(1, -1)
    return spread(flat, centre)


def batch_deviation(rewards: Tensor, centre: Tensor) -> Tensor:
    """Standard deviation of all centred rewards of the batch: REINFORCE++ with a group baseline, arXiv 2501.03262.

    Centred rewards of a group add up to 0, so the mean that is subtracted there is 0 already. (groups, drawn) ->
    (1, 1), with Bessel's correction; over rollouts, where verl counts each as often as it has tokens
    (`compute_reinforce_plus_plus_baseline_outcome_advantage`).
    """
    return batch_std(rewards - centre, centre)


def beta_density(
    rewards: Tensor, centre: Tensor, alpha: float | None = None, beta: float | None = None, high: float = 1.0
) -> Tensor:
    """The density, at each group's share of successes, of a Beta distribution fitted to those of the batch.

    BNPO, arXiv 2506.02864: A = (r - p) / f(p; alpha, beta), with alpha = 1 + a/3 and beta = 1 + b/3, which give the
    least variance, for Beta(a, b) with the mean and variance of p over the groups; neither below 1, as in its authors'
    code. alpha = beta = 1 is REINFORCE with a mean baseline, 3/2 is GRPO up to a factor. Where all groups have the same
    p (or there is but one) no distribution can be fitted, and both are 1.

    Args:
        rewards: (groups, drawn), 0 or `high`, NaN where unscorable.
        centre: (groups, 1), their means.
        alpha: with `beta`, in place of what is fitted.
        high: the reward of a success.

    Returns:
        (groups, 1).

    Raises:
        ValueError: naming rewards that are neither 0 nor `high`.
    """
    odd = rewards[~torch.isnan(rewards) & (rewards != 0) & (rewards != high)]
    if odd.numel():
        found = ", ".join(f"{value:g}" for value in odd.unique()[:5].tolist())
        raise ValueError(
            f"Beta-normalised advantages (BNPO) need binary rewards, 0 or {high:g}; these hold {found} too. Reward "
            "verdicts by those two numbers only, or name another estimator"
        )
    share = (centre / high).double()
    if alpha is None or beta is None:
        alpha, beta = _fitted(share[~torch.isnan(share)])
    alpha, beta = torch.as_tensor(alpha).to(share), torch.as_tensor(beta).to(share)
    norm = torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)
    return (torch.xlogy(alpha - 1, share) + torch.xlogy(beta - 1, 1 - share) - norm).exp().to(rewards.dtype)


def rescale_by_nonzero(advantages: Tensor) -> Tensor:
    """Advantages times rows of the group / its non-zero advantages; (groups, drawn) in and out.

    A fault of the authors' release (`mcgrpo.train.released`); the paper has no such factor. With one success among
    three and a MAD of 0 it makes 6000 of 2000.
    """
    nonzero = (advantages != 0).sum(dim=1, keepdim=True).clamp(min=1)
    return advantages * (advantages.size(1) / nonzero)


def _fitted(share: Tensor) -> tuple[Tensor, Tensor]:
    """BNPO's alpha and beta, from the successes' shares of all groups, by their mean and variance."""
    one = torch.ones((), dtype=share.dtype, device=share.device)
    if share.numel() < 2:
        return one, one
    mean, variance = share.mean(), share.var()
    size = mean * (1 - mean) / variance - 1  # a + b
    size = torch.where(variance > 0, size, 0)
    return (1 + size * mean / 3).clamp(min=1), (1 + size * (1 - mean) / 3).clamp(min=1)
