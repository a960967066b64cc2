"""Groups in which the order of the rollouts decides which level loses a row, and the chance of each outcome.

`keep_largest` drops, of rollouts equally far from the centre, the first drawn. They may lie on two levels, one on
either side of the centre. Every order of the rollouts is equally likely, so the number dropped of either level is
hypergeometric.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Ties(NamedTuple):
    """Count vectors whose outcome depends on the order; one element for each.

    Args:
        group: index of the count vector.
        low: index of one of the tied levels.
        high: index of the other one.
        dropped: rows dropped of these two levels together.
    """

    group: Tensor
    low: Tensor
    high: Tensor
    dropped: Tensor


def find_ties(counts: Tensor, kept: Tensor, kept_reversed: Tensor) -> Ties:
    """The count vectors whose groups keep other rows in reverse order.

    Args:
        counts: (groups, levels) integers.
        kept: (groups, levels), rows kept of each level, of groups sorted by level.
        kept_reversed: the same in reverse order.

    Of more than two such levels two are named; `expected_kept` then differs from what is kept.
    """
    differ = kept != kept_reversed
    group = differ.any(dim=1).nonzero()[:, 0]
    differ = differ[group].long()
    low, high = differ.topk(2, dim=1).indices.sort(dim=1).values.unbind(dim=1)
    dropped = ((counts - kept)[group] * differ).sum(dim=1)
    return Ties(group, low, high, dropped)


def expected_kept(rows: Tensor, group: Tensor, counts: Tensor, kept: Tensor, ties: Ties) -> Tensor:
    """Rows kept of each level if the first drawn of tied rollouts are dropped.

    Args:
        rows: (orders, n), the level of each rollout.
        group: (orders,), the count vector of each order.
        counts: (groups, levels) integers.
        kept: (groups, levels), of groups sorted by level.
        ties: of the groups.

    Returns:
        (orders, levels).
    """
    which = torch.full((len(counts),), -1).index_put((ties.group,), torch.arange(len(ties.group)))[group]
    tied, expected = which >= 0, kept[group]
    low, high, dropped = (field[which[tied]].unsqueeze(1) for field in ties[1:])
    is_low, is_high = rows[tied] == low, rows[tied] == high
    goes = (is_low | is_high) & ((is_low | is_high).cumsum(dim=1) <= dropped)
    lost = torch.zeros_like(expected[tied])
    lost.scatter_(1, low, (goes & is_low).sum(dim=1, keepdim=True))
    lost.scatter_(1, high, (goes & is_high).sum(dim=1, keepdim=True))
    of_ties = torch.zeros_like(lost).scatter_(1, low, 1).scatter_(1, high, 1).bool()
    expected[tied] = torch.where(of_ties, counts[group[tied]] - lost, expected[tied])
    return expected


def orders_of_ties(counts: Tensor, ties: Ties) -> tuple[Tensor, Tensor, Tensor]:
    """One order for every number of rows that the lower tied level can lose.

    Returns:
        rows: (orders, n), the level of each rollout: those to drop first, then the others.
        group: (orders,), the count vector of each.
        share: (orders,) float64, the share of all orders of its group that have this outcome.
    """
    rows, groups, shares = [], [], []
    for group, low, high, dropped in zip(*(field.tolist() for field in ties), strict=True):
        rest = counts[group].tolist()
        lows, highs = rest[low], rest[high]
        for lost in range(max(0, dropped - highs), min(dropped, lows) + 1):
            left = list(rest)
            left[low], left[high] = lows - lost, highs - (dropped - lost)
            front = [low] * lost + [high] * (dropped - lost)
            rows.append(front + [level for level, count in enumerate(left) for _ in range(count)])
            groups.append(group)
            ways = math.comb(lows, lost) * math.comb(highs, dropped - lost)
            shares.append(ways / math.comb(lows + highs, dropped))
    size = int(counts[0].sum())
    return (
        torch.tensor(rows, dtype=torch.long).view(-1, size),
        torch.tensor(groups, dtype=torch.long),
        torch.tensor(shares, dtype=torch.float64),
    )
