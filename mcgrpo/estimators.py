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

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from mcgrpo.diagnostics import diagnose
from mcgrpo.group_statistics import mad, mean, median, std
from mcgrpo.variants import FlipRule

Centre = Callable[[Tensor], Tensor]
Scale = Callable[[Tensor, Tensor], Tensor]
Adjust = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(rewards, advantages, keep) -> (advantages, keep), each (groups, drawn): what is done to an estimate before it is
described and used."""
FLIP_RULES: tuple[str, ...] = get_args(FlipRule)


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
    rewards: Tensor,
    estimator: str,
    num_generations: int,
    epsilon: float | None = None,
    adjust: Adjust | None = None,
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Advantages of a batch of groups, and which rows of each group reach the update.

    Args:
        rewards: (groups, drawn) floats, a group per row, `drawn` = num_generations + the estimator's extra rollouts;
            NaN where a rollout could not be scored.
        estimator: a name in `ESTIMATORS`.
        num_generations: G, the rows of each group that are kept.
        epsilon: replaces the estimator's own.
        adjust: changes advantages and kept rows, before they are diagnosed.

    Returns:
        advantages: (groups, drawn), in the dtype of rewards; exactly 0 for unscorable rollouts.
        keep: (groups, drawn) booleans, exactly G of them true in each group.
        diagnostics: scalars over the batch (see `mcgrpo.diagnostics`).

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
    if adjust is not None:
        advantages, keep = adjust(rewards, advantages, keep)
    return advantages, keep, diagnose(rewards, scale, advantages, keep, centre=centre)


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


def check_flips(rate: float, rule: FlipRule, num_generations: int) -> None:
    """Refuse sign flips that cannot be drawn.

    Raises:
        ValueError: for a rate outside [0, 1], an unknown rule, or a share of G that is not whole.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"a flip rate is a share in [0, 1], not {rate!r}")
    if rule not in FLIP_RULES:
        raise ValueError(f"unknown flip rule {rule!r}; there are: {', '.join(FLIP_RULES)}")
    flipped = rate * num_generations
    if rule == "exact" and abs(flipped - round(flipped)) > 1e-9:
        raise ValueError(
            f"flip rule 'exact': {rate:g} x {num_generations} (num_generations) = {flipped:g} rollouts of each group, "
            "which is not a whole number; use the rule 'bernoulli' or another rate"
        )


def draw_flips(keep: Tensor, rate: float, rule: FlipRule, key: str) -> Tensor:
    """Which advantages to negate: a pure function of its arguments, the same on every process and device.

    `bernoulli`: each of the drawn rows with probability `rate`, independently. `exact`: `rate` of the kept rows of
    each group, a whole number, chosen uniformly. Rows with an advantage of 0 take part in both.

    The authors' release flips (by `bernoulli`) after centring and before scaling. Neither the std nor the MAD of a
    group depends on the signs put on its deviations there, so that equals negating the finished advantage; nor does
    |reward - centre|, by which rows are kept.

    Args:
        keep: (groups, drawn) booleans, G true in each row.
        key: what the draw depends on, hashed into the generator's seed.

    Returns:
        (groups, drawn) booleans.
    """
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    uniform = torch.rand(keep.shape, generator=torch.Generator().manual_seed(seed)).to(keep.device)
    if rule == "bernoulli":
        return uniform < rate
    order = uniform.masked_fill(~keep, torch.inf).argsort(dim=1, stable=True)
    flipped = round(rate * int(keep[0].sum()))
    return torch.zeros_like(keep).scatter(1, order[:, :flipped], True)
