"""Rules for the rows of each group that are trained on."""

import torch
from torch import Tensor


def keep_largest(rewards: Tensor, centre: Tensor, num_generations: int) -> Tensor:
    """Keep the G rows farthest from the centre; unscorable rows are dropped first, and of equal rows the first drawn.

    With the median of an odd group this drops the median itself (MC-GRPO's pivot), with the mean the row of the
    smallest |A| (the paper's control). Ties are not broken by length, which would favour short completions.

    Args:
        rewards: (groups, drawn), NaN where unscorable.
        centre: the baselines; broadcast to the rewards.
        num_generations: G, the rows of each group that are kept.

    Returns:
        (groups, drawn) booleans, G true in each row.
    """
    keep = torch.ones_like(rewards, dtype=torch.bool)
    dropped = rewards.size(1) - num_generations
    if not dropped:
        return keep
    size = torch.nan_to_num((rewards - centre).abs(), nan=-1.0)
    return keep.scatter(1, size.argsort(dim=1, stable=True)[:, :dropped], False)


def keep_max_variance(rewards: Tensor, centre: Tensor, num_generations: int) -> Tensor:
    """Keep the G rewards of each group with the largest variance: max-variance down-sampling, PODS, arXiv 2504.13818.

    These are the i smallest and the G - i largest rewards for some i: sorting and G + 1 sums find them in O(n log n).
    Of equal variances, the smallest i; of equal rewards, the first drawn among the smallest and the last drawn among
    the largest. Unscorable rollouts are kept last.

    Args:
        rewards: (groups, drawn), NaN where unscorable.
        centre: not used.
        num_generations: G.

    Returns:
        (groups, drawn) booleans, G true in each row.
    """
    missing = torch.isnan(rewards)
    ranked, order = rewards.double().masked_fill(missing, torch.inf).sort(dim=1, stable=True)
    count = (~missing).sum(dim=1, keepdim=True)
    position = torch.arange(rewards.size(1), device=rewards.device)
    lowest = torch.arange(num_generations + 1, device=rewards.device).expand(len(rewards), -1)
    highest = (count - num_generations + lowest).clamp(min=0)  # rank of the first of the largest
    centred = torch.where(position < count, ranked - ranked[:, :1], 0)

    def of_candidates(values: Tensor) -> Tensor:
        sums = torch.nn.functional.pad(values.cumsum(dim=1), (1, 0))
        return sums.gather(1, lowest) + sums.gather(1, count) - sums.gather(1, highest)

    spread = of_candidates(centred**2) - of_candidates(centred) ** 2 / num_generations
    best = spread.argmax(dim=1, keepdim=True)
    chosen = (position < best) | ((position >= highest.gather(1, best)) & (position < count))
    chosen = torch.where(count > num_generations, chosen, position < num_generations)
    return torch.zeros_like(missing).scatter(1, order, chosen)
