"""How much signal an estimator leaves of the policy gradient: exact, from reward probabilities, without training.

One on-policy step on one prompt: n = G + extra rollouts are drawn, each with reward r_l with probability p_l. With the
advantages A_i of `estimate` (0 for a row that is left out) and the scores s_i = grad log pi(o_i), the update is
g = (1/G) sum_i A_i s_i. Everything here is an expectation over the multinomial counts of the levels, which are all
enumerated, in float64.

Given its level, a score is its mean over the level, grad log p_l, plus a remainder that is independent of everything
else. Directions and objectives follow from that. Noise and ratios need the geometry of the scores: that of a
softmax over the levels, whose grad log p_l is e_l - p, with remainders of variance `rho`. If K equally likely
completions make up each level, this is exact with rho = K - 1, up to a factor that all estimators share.

What it leaves out: clipping, several updates on one batch, Adam, KL terms, and a policy that moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mcgrpo.estimators.enumeration import Enumeration, enumerate_groups

Numbers = Sequence[float] | Tensor

CHUNK = 10_000_000
"""Probabilities of groups that are held at a time: 80 MB."""


class Moments(NamedTuple):
    """Mean and variance of an update, each (prompts,).

    Args:
        gain: E[g] . grad P(correct).
        level_noise: the variance of the scores' level part, the trace of Cov((1/G) sum_l S_l (e_l - p)).
        row_noise: E[sum_i A_i^2] / G^2, to be multiplied by the variance of the remainder.
    """

    gain: Tensor
    level_noise: Tensor
    row_noise: Tensor

    def noise(self, rho: float) -> Tensor:
        """The variance of the update, summed over all coordinates; (prompts,)."""
        return self.level_noise + rho * self.row_noise

    def ratio(self, rho: float) -> float:
        """Signal to noise of one step over all prompts: sum of gains / root of the summed noise; 0 without gain."""
        gain = self.gain.sum()
        return (gain / self.noise(rho).sum().sqrt()).item() if gain else 0.0


@dataclass(frozen=True)
class Signal:
    """What an estimator leaves of the policy gradient, for a set of prompts. Index it for some of the prompts.

    Args:
        num_generations: G, rows of each prompt that are trained on.
        drawn: n, rollouts of each prompt.
        rho: variance of a score within its level, in units in which a level's mean score is e_l - p.
        levels: (levels,) rewards.
        probabilities: (prompts, levels).
        climb: (prompts, levels), grad P(correct): the direction in which the success rate rises.
        direction: (prompts, levels), w_l = E[sum of A_i over level l] / (G p_l), so that E[g] = sum_l w_l grad p_l; its
            limit where p_l is 0. Only differences between levels matter, since the grad p_l add up to 0.
        moments: of the update.
        best: of the update by all n rollouts with A_i = r_i - E[r]: no better baseline can be had without looking at
            the scores.
        groups: what the estimator makes of every group.
    """

    num_generations: int
    drawn: int
    rho: float
    levels: Tensor
    probabilities: Tensor
    climb: Tensor
    direction: Tensor
    moments: Moments
    best: Moments
    groups: Enumeration

    def __getitem__(self, prompts: Any) -> "Signal":
        prompts = [prompts] if isinstance(prompts, int) else prompts
        tensors = ("probabilities", "climb", "direction")
        some: dict[str, Any] = {name: getattr(self, name)[prompts] for name in tensors}
        for name in ("moments", "best"):
            some[name] = Moments(*(field[prompts] for field in getattr(self, name)))
        return replace(self, **some)

    @cached_property
    def objective(self) -> Tensor:
        """F(p): what the estimator climbs in place of the success rate; (prompts,).

        The integral of `direction` along the straight line from a prompt that always gets the lowest reward. With
        two levels F'(p) = w_1 - w_0 at every success rate p. With more levels the direction need not be a gradient, and
        the integral is along this line only. Exact: the integrand is a polynomial of degree n - 1.
        """
        start = torch.zeros_like(self.levels).index_fill(0, self.levels.argmin(), 1.0)
        steps, weights = _gauss_legendre((self.drawn + 1) // 2)
        whole = self.probabilities - start
        along = [_direction(self.groups, self.num_generations, start + step * whole) for step in steps]
        return torch.stack([(each * whole).sum(dim=1) for each in along], dim=1) @ whole.new_tensor(weights)

    @property
    def gain(self) -> Tensor:
        """E[g] . grad P(correct): how fast a step of size 1 raises each prompt's success rate; (prompts,)."""
        return self.moments.gain

    @property
    def noise(self) -> Tensor:
        """Variance of the update of each prompt, Var(level part) + rho E[sum_i A_i^2] / G^2; (prompts,)."""
        return self.moments.noise(self.rho)

    @property
    def per_step(self) -> float:
        """Signal to noise of one step over all prompts, sum(gain) / sqrt(sum(noise))."""
        return self.moments.ratio(self.rho)

    @property
    def per_rollout(self) -> float:
        """per_step^2 / (prompts x n), with the sign of per_step.

        The squares of signal to noise add up over independent prompts, so this is what one rollout drawn contributes:
        an estimator with twice as much needs half the rollouts.
        """
        return _signed_square(self.per_step) / (len(self.gain) * self.drawn)

    @property
    def per_row(self) -> float:
        """per_step^2 / (prompts x G), with the sign of per_step: what one row trained on contributes."""
        return _signed_square(self.per_step) / (len(self.gain) * self.num_generations)

    @property
    def of_best(self) -> float:
        """per_step^2 / (that of `best`): the share of its rollouts that a known baseline would need instead.

        It can exceed 1 where a division by the scale weights the prompts better than no division does.
        """
        best = self.best.ratio(self.rho)
        return _signed_square(self.per_step) / best**2 if best else 0.0


def signal(
    estimator: str,
    num_generations: int,
    levels: Numbers,
    probabilities: Sequence[Numbers] | Tensor,
    *,
    rho: float = 1.0,
    **options: Any,
) -> Signal:
    """The signal that an estimator leaves at the given reward probabilities.

    Args:
        estimator: a name that `get_estimator` knows, which compares rewards within a group only.
        num_generations: G.
        levels: (levels,) distinct finite rewards, two or more; all but the lowest count as success.
        probabilities: (prompts, levels), each row adding up to 1.
        rho: variance of a score within its level; large where many different completions get the same reward.
        **options: `extra_rollouts`, `epsilon`, `mad_zero` and `max_advantage`, as in `estimate`.

    Raises:
        ValueError: for an estimator that looks beyond the rewards of one group, or depends on their order in an unknown
            way; for levels or probabilities that are none, naming the row; and whatever `estimate` raises.
        TypeError: for another option.
    """
    if unknown := set(options) - {"extra_rollouts", "epsilon", "mad_zero", "max_advantage"}:
        raise TypeError(f"signal() has no option {min(unknown)!r}")
    if not rho >= 0:
        raise ValueError(f"rho is a variance, at least 0, not {rho!r}")
    levels = _checked_levels(levels)
    chances = _checked_probabilities(probabilities, len(levels))
    good = (levels > levels.min()).double()
    groups = enumerate_groups(estimator, num_generations, levels, **options)
    drawn = int(groups.counts[0].sum())
    climb = chances * (good - (chances * good).sum(dim=1, keepdim=True))
    direction = _direction(groups, num_generations, chances)
    moments = _moments(groups, num_generations, chances, direction, climb)
    best = _best(drawn, levels, chances, climb)
    return Signal(num_generations, drawn, rho, levels, chances, climb, direction, moments, best, groups)


def _direction(groups: Enumeration, num_generations: int, chances: Tensor) -> Tensor:
    """w_l = E[S_l] / (G p_l): one p_l less in each term, so that it is finite where p_l is 0."""
    columns = []
    for level in range(chances.size(1)):
        others = groups.counts.clone()
        others[:, level] = (others[:, level] - 1).clamp(min=0)  # S_l is 0 where there was none
        sums = groups.outcomes.sums[:, level : level + 1]
        columns.append(_expectation(groups.weight, others, sums, chances) / num_generations)
    return torch.cat(columns, dim=1)


def _moments(groups: Enumeration, num_generations: int, chances: Tensor, direction: Tensor, climb: Tensor) -> Moments:
    sums, squares = groups.outcomes.sums, groups.outcomes.squares
    total = sums.sum(dim=1, keepdim=True)
    terms = [(sums**2).sum(dim=1, keepdim=True), total**2, squares[:, None], sums * total]
    expected = _expectation(groups.weight, groups.counts, torch.cat(terms, dim=1), chances)
    own, crossed, both = expected[:, 0], expected[:, 3:], expected[:, 1]
    second = own - 2 * (chances * crossed).sum(dim=1) + (chances**2).sum(dim=1) * both
    mean = _in_logits(direction, chances)
    level_noise = (second / num_generations**2 - (mean**2).sum(dim=1)).clamp(min=0)
    return Moments((mean * climb).sum(dim=1), level_noise, expected[:, 2] / num_generations**2)


def _best(drawn: int, levels: Tensor, chances: Tensor, climb: Tensor) -> Moments:
    """The update by all rollouts with the baseline E[r]."""
    deviations = levels - (chances * levels).sum(dim=1, keepdim=True)
    mean = _in_logits(deviations, chances)
    sizes = 1 - 2 * chances + (chances**2).sum(dim=1, keepdim=True)  # |e_l - p|^2
    one = (chances * deviations**2 * sizes).sum(dim=1) - (mean**2).sum(dim=1)
    return Moments((mean * climb).sum(dim=1), one / drawn, (chances * deviations**2).sum(dim=1) / drawn)


def _in_logits(direction: Tensor, chances: Tensor) -> Tensor:
    """sum_l w_l grad p_l, with grad p_l = p_l (e_l - p); (prompts, levels)."""
    return chances * (direction - (chances * direction).sum(dim=1, keepdim=True))


def _expectation(weight: Tensor, counts: Tensor, values: Tensor, chances: Tensor) -> Tensor:
    """The sum over groups of weight x prod_l p_l^c_l x values; (groups, columns) -> (prompts, columns)."""
    sums = []
    for part in chances.split(max(1, CHUNK // len(counts))):
        likely = weight.expand(len(part), -1)
        for level in range(part.size(1)):
            powers = part[:, level, None] ** torch.arange(int(counts.max()) + 1)
            likely = likely * powers[:, counts[:, level]]
        sums.append(likely @ values.to(likely))
    return torch.cat(sums)


def _gauss_legendre(points: int) -> tuple[list[float], list[float]]:
    """Nodes and weights on [0, 1], exact for polynomials below degree 2 x points (Golub and Welsch, 1969)."""
    order = torch.arange(1, points, dtype=torch.float64)
    beside = order / (4 * order**2 - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(beside, 1) + torch.diag(beside, -1))
    return ((nodes + 1) / 2).tolist(), (vectors[0] ** 2).tolist()


def _signed_square(ratio: float) -> float:
    return ratio * abs(ratio)


def _checked_levels(levels: Numbers) -> Tensor:
    values = torch.as_tensor(levels, dtype=torch.float64)
    if values.dim() != 1 or len(values) < 2 or not values.isfinite().all() or len(values.unique()) < len(values):
        raise ValueError(f"levels should be two or more different finite rewards, not {levels}")
    return values


def _checked_probabilities(probabilities: Sequence[Numbers] | Tensor, levels: int) -> Tensor:
    chances = torch.as_tensor(probabilities, dtype=torch.float64)
    if chances.dim() != 2 or not len(chances) or chances.size(1) != levels:
        shape = tuple(chances.shape)
        raise ValueError(f"probabilities should have the shape (prompts, {levels}), one for each level, not {shape}")
    wrong = ~((chances >= 0).all(dim=1) & torch.isclose(chances.sum(dim=1), chances.new_ones(()), rtol=0, atol=1e-6))
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"probabilities of prompt {row} should be at least 0 and add up to 1, not {chances[row].tolist()}"
        )
    return chances / chances.sum(dim=1, keepdim=True)
