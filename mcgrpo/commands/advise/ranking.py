"""Estimators and G, ranked by the signal that they leave for what they cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mcgrpo.estimators import ESTIMATORS, Signal, get_estimator, signal, uses_mad_zero

SAME = 1e-9
"""Relative difference of signals that are equal but for rounding."""


@dataclass(frozen=True)
class Costs:
    """Seconds of one rollout and of one row in an update; with (1, 0), signal is per rollout.

    `all_rows`: an update computes all G rows, not only those with an advantage.
    """

    rollout: float = 1.0
    row: float = 0.0
    all_rows: bool = False

    def of(self, signal: Signal) -> Tensor:
        """Seconds of each prompt in a step; (prompts,)."""
        rows = torch.full_like(signal.active, signal.num_generations) if self.all_rows else signal.active
        return self.rollout * signal.drawn + self.row * rows


@dataclass(frozen=True)
class Candidate:
    """An estimator at one G, on a grid of reward probabilities.

    Args:
        names: of the estimators that leave this signal: those that differ by a factor do not differ here.
        signal: what it leaves, each point of the grid being a prompt.
        costs: of a step.
    """

    names: tuple[str, ...]
    signal: Signal
    costs: Costs

    @property
    def name(self) -> str:
        """All names, as in "mean = rloo"."""
        return " = ".join(self.names)

    def efficiency(self, shares: Tensor) -> Tensor:
        """Squared signal to noise per second, of prompts that are distributed like that; (fits, points) -> (fits,).

        (mean gain)^2 / mean noise / mean seconds: over prompts and steps, squares of signal to noise add up.
        """
        gain, noise, seconds = (
            shares @ each for each in (self.signal.gain, self.signal.noise, self.costs.of(self.signal))
        )
        return torch.where(noise > 0, gain * gain.abs() / noise / seconds, 0.0)


@dataclass(frozen=True)
class Row:
    """What is said of a candidate.

    Args:
        value: squared signal to noise per second, and `low` and `high` its 95% interval over prompts.
        of_first: the same over that of the first, with `of_first_low` and `of_first_high`.
        first: share of the bootstrap samples in which none is better.
        hard: as `of_first`, on hard prompts alone: over the best of all candidates there; None without such prompts.
        easy: the same of easy prompts.
        weight_hard: what the objective counts hard prompts, over what it counts all.
        weight_easy: the same of easy prompts.
    """

    estimator: str
    num_generations: int
    drawn: int
    value: float
    low: float
    high: float
    of_first: float
    of_first_low: float
    of_first_high: float
    first: float
    hard: float | None
    easy: float | None
    weight_hard: float | None
    weight_easy: float | None


def candidates(
    estimators: Sequence[str] | None,
    sizes: Sequence[int],
    levels: Sequence[float],
    points: Tensor,
    costs: Costs,
    **options: Any,
) -> tuple[list[Candidate], list[str]]:
    """Each estimator at each G, those with equal signals as one.

    Args:
        estimators: names; None for all registered ones that have a signal.
        sizes: of G.
        levels: rewards.
        points: (points, levels), reward probabilities.
        costs: of a step.
        **options: of `signal`.

    Returns:
        The candidates, and why registered estimators are left out.

    Raises:
        ValueError: of `signal`, for an estimator that was asked for.
    """
    distinct: list[Candidate] = []
    left_out = []
    for name in estimators or ESTIMATORS:
        used = options if uses_mad_zero(get_estimator(name)) else options | {"mad_zero": "epsilon"}
        try:
            own = [Candidate((name,), signal(name, size, levels, points, **used), costs) for size in sizes]
        except ValueError as error:
            if estimators:
                raise
            left_out.append(f"{name}: {error}")
            continue
        for each in own:
            _add(distinct, each)
    return distinct, left_out


def _add(distinct: list[Candidate], new: Candidate) -> None:
    for place, other in enumerate(distinct):
        if _alike(other.signal, new.signal):
            distinct[place] = Candidate((*other.names, *new.names), other.signal, other.costs)
            return
    distinct.append(new)


def _alike(one: Signal, other: Signal) -> bool:
    """Whether two signals differ by a factor only, with the same rollouts and rows."""
    if (one.num_generations, one.drawn) != (other.num_generations, other.drawn):
        return False
    factor = one.noise.sum().sqrt() / other.noise.sum().sqrt()
    pairs = ((one.gain, other.gain * factor), (one.noise, other.noise * factor**2), (one.active, other.active))
    return all(torch.allclose(*pair, rtol=SAME, atol=SAME * pair[0].abs().max().item()) for pair in pairs)


def rank(candidates: Sequence[Candidate], shares: Tensor, parts: Sequence[Tensor | None]) -> list[Row]:
    """The candidates, from the most signal per second to the least.

    Args:
        candidates: at least one.
        shares: (1 + resamples, points), see `mixture.mixtures`.
        parts: the distribution over hard prompts alone, and over easy ones, see `mixture.part`.
    """
    values = torch.stack([each.efficiency(shares) for each in candidates])
    best = values[:, 0].argmax()
    relative = values / values[best]
    ranked = values[best, 1:] > 0  # resamples of prompts that all fail, or all succeed, rank nothing
    first = (values == values.amax(dim=0))[:, 1:][:, ranked].double().mean(dim=1)
    ends = [_interval(each) for each in values[:, 1:]]
    relative_ends = [_interval(each) for each in relative[:, 1:][:, ranked]]
    compared = [_of_best(candidates, part) for part in parts]
    weights = [[_weight(each, part, shares[0]) for part in parts] for each in candidates]
    rows = [
        Row(
            each.name, each.signal.num_generations, each.signal.drawn, values[index, 0].item(), *ends[index],
            relative[index, 0].item(), *relative_ends[index], first[index].item(),
            *(part[index] for part in compared), *weights[index],
        )
        for index, each in enumerate(candidates)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-round(row.of_first, 9), row.num_generations))


def _interval(values: Tensor) -> tuple[float, float]:
    if not len(values):
        return math.nan, math.nan
    low, high = values.quantile(torch.tensor([0.025, 0.975], dtype=values.dtype)).tolist()
    return low, high


def _of_best(candidates: Sequence[Candidate], part: Tensor | None) -> list[float | None]:
    if part is None:
        return [None] * len(candidates)
    values = torch.stack([each.efficiency(part.unsqueeze(0))[0] for each in candidates])
    return (values / values.max()).tolist() if values.max() > 0 else [None] * len(candidates)


def _weight(candidate: Candidate, part: Tensor | None, whole: Tensor) -> float | None:
    """The slope of the objective along the success rate on some prompts, over that on all; None where it has none."""
    ours, steepest = candidate.signal.gain, candidate.signal.climb.square().sum(dim=1)
    if part is None or not part @ steepest > 0:
        return None
    return (((part @ ours) / (part @ steepest)) / ((whole @ ours) / (whole @ steepest))).item()
