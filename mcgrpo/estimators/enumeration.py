"""Every way in which a group's rollouts can fall on reward levels, and what an estimator makes of each.

`keep_largest` drops, of rollouts equally far from the centre, the first drawn. They may lie on two levels, one on
either side of the centre. Every order of the rollouts is equally likely, so the number dropped of either level is
hypergeometric.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mcgrpo.estimators.estimation import check_options, compute_estimate
from mcgrpo.estimators.keep import keep_largest
from mcgrpo.estimators.registry import get_estimator

MOST_GROUPS = 250_000
"""Count vectors that are enumerated at most: seconds, and a few GB."""

SHUFFLES = 2
"""Random orders of each group that check how an estimator depends on the order."""

PROBES = 8
"""Groups that are estimated alone as well, to find estimators that compare groups."""


class Outcomes(NamedTuple):
    """What an estimator makes of groups, summed over the rows of each level.

    Args:
        kept: (groups, levels) integers, rows kept; a row adds up to G.
        sums: (groups, levels), S_l: the sum of the advantages of the kept rows of level l.
        squares: (groups,), the sum of the squared advantages of the kept rows.
    """

    kept: Tensor
    sums: Tensor
    squares: Tensor


class Enumeration(NamedTuple):
    """Every group that the rollouts of a prompt can form, without regard to order, and its outcome.

    A group with level counts c has the probability `weight` x prod_l p_l^c_l. Where the order decides which level loses
    a row, a count vector comes once for each outcome.

    Args:
        counts: (groups, levels) integers, rollouts drawn of each level; a row adds up to n.
        weight: (groups,), the multinomial coefficient times the outcome's share of all orders.
        outcomes: of these groups.
    """

    counts: Tensor
    weight: Tensor
    outcomes: Outcomes


class EnumerationError(ValueError):
    """A group's rewards alone do not determine what an estimator makes of it, or there are too many groups."""


def enumerate_groups(
    estimator: str, num_generations: int, levels: Tensor, max_advantage: float | None = None, **options: Any
) -> Enumeration:
    """What `estimate` makes of every group of rewards on these levels, without its diagnostics, which take longer.

    Args:
        estimator: a name that `get_estimator` knows.
        num_generations: G.
        levels: (levels,) distinct rewards, float64.
        max_advantage: as in `estimate`.
        **options: of `estimate`: `extra_rollouts`, `epsilon`, `mad_zero`.

    Raises:
        EnumerationError: for an estimator that looks at anything but the rewards of one group, or at their order other
            than `keep_largest` does; for too many groups.
        ValueError: of `estimate`.
    """
    rule = get_estimator(estimator)
    extra = options.get("extra_rollouts")
    counts = count_vectors(len(levels), num_generations + (rule.extra_rollouts if extra is None else extra))

    check_options(max_advantage=max_advantage)
    bound = math.inf if max_advantage is None else max_advantage

    def outcomes(rows: Tensor) -> Outcomes:
        estimated = compute_estimate(levels[rows], estimator, num_generations, **options)
        return _sum_by_level(rows, estimated.advantages.clamp(-bound, bound), estimated.keep, len(levels))

    rows, group = _orders(counts)
    by_order = outcomes(rows)
    _check_alone(estimator, by_order, outcomes, rows)
    first = Outcomes(*(field[: len(counts)] for field in by_order))
    differ = first.kept != by_order.kept[len(counts) : 2 * len(counts)]  # in ascending and in descending order
    tied = differ.any(dim=1)
    same = torch.isclose(by_order.sums, first.sums[group], rtol=1e-9, atol=1e-9) & (by_order.kept == first.kept[group])
    by_drop = rule.keep is keep_largest and (differ.sum(dim=1) <= 2).all()
    if not (same.all(dim=1) | tied[group]).all() or (tied.any() and not by_drop):
        raise EnumerationError(
            f"estimator {estimator!r} depends on the order of a group's rollouts, beyond dropping the first drawn of "
            "equally close ones: its signal cannot be enumerated"
        )
    weight = _multinomial(counts)
    if not tied.any():
        return Enumeration(counts, weight, first)
    tied_rows, tied_group, share = _orders_of_ties(counts, first.kept, differ)
    return Enumeration(
        torch.cat([counts[~tied], counts[tied_group]]),
        torch.cat([weight[~tied], weight[tied_group] * share]),
        Outcomes(*(torch.cat([one[~tied], other]) for one, other in zip(first, outcomes(tied_rows), strict=True))),
    )


def count_vectors(levels: int, size: int) -> Tensor:
    """Every way to spread `size` rollouts over some levels, (C(size + levels - 1, levels - 1), levels).

    Raises:
        EnumerationError: for more than `MOST_GROUPS`.
    """
    groups = math.comb(size + levels - 1, levels - 1)
    if groups > MOST_GROUPS:
        raise EnumerationError(
            f"{size} rollouts fall on {levels} levels in {groups} ways, over {MOST_GROUPS}: use fewer levels"
        )
    bars = torch.tensor(list(itertools.combinations(range(size + levels - 1), levels - 1))).view(groups, levels - 1)
    start, end = torch.full((groups, 1), -1), torch.full((groups, 1), size + levels - 1)
    return torch.diff(bars, dim=1, prepend=start, append=end) - 1


def _orders(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Each group's rollouts in ascending order of levels, all in descending order, and all in random orders.

    Returns:
        rows: (orders, n), the level of each rollout.
        group: (orders,), the count vector of each.
    """
    groups, levels = counts.shape
    ascending = torch.arange(levels).repeat(groups).repeat_interleave(counts.flatten()).view(groups, -1)
    generator = torch.Generator().manual_seed(0)
    shuffled = [
        ascending.gather(1, torch.rand(ascending.shape, generator=generator).argsort(dim=1)) for _ in range(SHUFFLES)
    ]
    orders = [ascending, ascending.flip(1), *shuffled]
    return torch.cat(orders), torch.arange(groups).repeat(len(orders))


def _orders_of_ties(counts: Tensor, kept: Tensor, differ: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One order for every number of rows that the lower of two tied levels can lose.

    Args:
        counts: (groups, levels) integers.
        kept: (groups, levels), rows kept of each level.
        differ: (groups, levels) booleans, the two tied levels of a group that has a tie.

    Returns:
        rows: (orders, n), the level of each rollout: those to drop first, then the others.
        group: (orders,), the count vector of each.
        share: (orders,) float64, the share of all orders of its group that have this outcome.
    """
    rows, groups, shares = [], [], []
    for group in differ.any(dim=1).nonzero()[:, 0].tolist():
        low, high = differ[group].nonzero()[:, 0].tolist()
        rest, dropped = counts[group].tolist(), int((counts - kept)[group, [low, high]].sum())
        lows, highs = rest[low], rest[high]
        for lost in range(max(0, dropped - highs), min(dropped, lows) + 1):
            left = list(rest)
            left[low], left[high] = lows - lost, highs - (dropped - lost)
            front = [low] * lost + [high] * (dropped - lost)
            rows.append(front + [level for level, count in enumerate(left) for _ in range(count)])
            groups.append(group)
            ways = math.comb(lows, lost) * math.comb(highs, dropped - lost)
            shares.append(ways / math.comb(lows + highs, dropped))
    return torch.tensor(rows), torch.tensor(groups), torch.tensor(shares, dtype=torch.float64)


def _sum_by_level(rows: Tensor, advantages: Tensor, keep: Tensor, levels: int) -> Outcomes:
    used = advantages * keep
    zeros = torch.zeros(len(rows), levels, dtype=torch.long)
    return Outcomes(
        zeros.scatter_add(1, rows, keep.long()),
        zeros.to(used.dtype).scatter_add(1, rows, used),
        (used**2).sum(dim=1),
    )


def _check_alone(estimator: str, together: Outcomes, outcomes: Callable[[Tensor], Outcomes], rows: Tensor) -> None:
    """Refuse an estimator that makes something else of a group alone than of that group among others."""
    for index in torch.linspace(0, len(rows) - 1, min(PROBES, len(rows))).long().tolist():
        alone = outcomes(rows[index : index + 1])
        if not torch.allclose(alone.sums, together.sums[index], rtol=1e-9, atol=1e-9):
            raise EnumerationError(
                f"estimator {estimator!r} looks beyond one group: its advantages depend on the other prompts of the "
                "batch, so one prompt's reward levels do not determine its signal"
            )


def _multinomial(counts: Tensor) -> Tensor:
    """Multinomial coefficients, exact below 2^53; (groups, levels) -> (groups,) float64."""
    size = int(counts[0].sum())
    binomials = torch.tensor([[math.comb(n, k) for k in range(size + 1)] for n in range(size + 1)], dtype=torch.float64)
    return binomials[counts.cumsum(dim=1), counts].prod(dim=1)
