"""Rewards in, advantages and the rows to train on out."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mcgrpo.estimators.diagnostics import diagnose, differ
from mcgrpo.estimators.options import check_options
from mcgrpo.estimators.registry import get_estimator
from mcgrpo.estimators.zero_scale import MAD_ZERO, MadZero, divisor


@dataclass(frozen=True)
class Advantages:
    """What an estimator makes of a batch of groups, before advantages are clamped.

    Args:
        rewards: (groups, drawn), NaN where a rollout could not be scored.
        centre: the baselines; broadcast to the rewards.
        scale: (groups, 1) or (1, 1), without epsilon; None for an estimator without a scale.
        advantages: (groups, drawn), in the dtype of rewards; exactly 0 for unscorable rollouts.
        keep: (groups, drawn) booleans, exactly G of them true in each group.
    """

    rewards: Tensor
    centre: Tensor
    scale: Tensor | None
    advantages: Tensor
    keep: Tensor


def estimate(
    rewards: Tensor,
    estimator: str,
    num_generations: int,
    *,
    extra_rollouts: int | None = None,
    epsilon: float | None = None,
    mad_zero: MadZero = "epsilon",
    max_advantage: float | None = None,
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Advantages of a batch of groups, and which rows of each group reach the update.

    Args:
        rewards: (groups, drawn) floats, a group per row, `drawn` = num_generations + the extra rollouts; NaN where a
            rollout could not be scored. All groups of the batch, since some estimators compare groups.
        estimator: a name that `get_estimator` knows.
        num_generations: G, the rows of each group that are kept.
        extra_rollouts: replaces the estimator's own number.
        epsilon: replaces the estimator's own; at least 0.
        mad_zero: the divisor of a group whose scale is 0 although its rewards differ, see `zero_scale.divisor`.
        max_advantage: advantages are clamped to [-max_advantage, max_advantage].

    Returns:
        advantages: (groups, drawn), in the dtype of rewards; exactly 0 for unscorable rollouts.
        keep: (groups, drawn) booleans, exactly G of them true in each group.
        diagnostics: scalars over the batch (see `mcgrpo.estimators.diagnostics`).

    Raises:
        ValueError: for an unknown estimator, an option that is invalid or that the estimator does not use, a shape that
            does not fit G, an infinite reward, or a group whose rewards differ while its divisor is 0
            (no epsilon or other `mad_zero`).
    """
    estimated = compute_estimate(
        rewards,
        estimator,
        num_generations,
        extra_rollouts=extra_rollouts,
        epsilon=epsilon,
        mad_zero=mad_zero,
    )
    estimated, diagnostics = clamp_and_diagnose(estimated, max_advantage)
    return estimated.advantages, estimated.keep, diagnostics


def compute_estimate(
    rewards: Tensor,
    estimator: str,
    num_generations: int,
    *,
    extra_rollouts: int | None = None,
    epsilon: float | None = None,
    mad_zero: MadZero = "epsilon",
) -> Advantages:
    """The first half of `estimate`: neither clamped nor diagnosed. Arguments and errors are those of `estimate`."""
    rule = get_estimator(estimator)
    check_options(mad_zero=mad_zero, extra_rollouts=extra_rollouts, epsilon=epsilon, estimator=estimator)
    epsilon = rule.epsilon if epsilon is None else epsilon
    extra = rule.extra_rollouts if extra_rollouts is None else extra_rollouts
    _check_rewards(rewards, estimator, num_generations, extra)
    rewards = rewards.detach()

    used, centre = rewards, rule.centre(rewards)
    _check_part("centre", centre, rewards, estimator, rewards.shape)
    keep = rule.keep(rewards, centre, num_generations)
    _check_keep(keep, rewards, estimator, num_generations)
    if rule.centre_of_kept:
        used = rewards.masked_fill(~keep, torch.nan)
        centre = rule.centre(used)
    scale = None if rule.scale is None else rule.scale(used, centre)
    if scale is not None:
        _check_part("scale", scale, rewards, estimator)
    deviations = used - centre
    if estimator != "mean-std" or epsilon == 0:  # elsewhere its rounding is TRL's
        deviations = _without_rounding(deviations, used)
    advantages = deviations if scale is None else deviations / divisor(mad_zero, used, centre, scale, epsilon)
    if advantages.isinf().any():
        raise _zero_divisor(used, advantages, estimator, epsilon, mad_zero)
    return Advantages(rewards, centre, scale, torch.nan_to_num(advantages, nan=0.0), keep)


def clamp_and_diagnose(estimated: Advantages, max_advantage: float | None) -> tuple[Advantages, dict[str, Tensor]]:
    """The second half of `estimate`; whatever changes advantages or kept rows on purpose comes before it.

    Raises:
        ValueError: for a `max_advantage` that is not above 0.
    """
    check_options(max_advantage=max_advantage)
    advantages, keep, clamped = estimated.advantages, estimated.keep, {}
    if max_advantage is not None:
        clamped["advantage/frac_clamped"] = ((advantages.abs() > max_advantage) & keep).sum() / keep.sum()
        advantages = advantages.clamp(-max_advantage, max_advantage)
    diagnostics = diagnose(estimated.rewards, estimated.scale, advantages, keep, centre=estimated.centre)
    return replace(estimated, advantages=advantages), diagnostics | clamped


def _zero_divisor(rewards: Tensor, advantages: Tensor, name: str, epsilon: float, mad_zero: MadZero) -> ValueError:
    """The error for groups whose rewards differ but are divided by 0."""
    groups = advantages.isinf().any(dim=1)
    first = int(groups.nonzero()[0])
    example = ", ".join(f"{reward:g}" for reward in rewards[first].tolist())
    return ValueError(
        f"estimator {name!r} with epsilon={epsilon!r} and mad_zero={mad_zero!r} makes advantages infinite in "
        f"{int(groups.sum())} of {len(groups)} groups, whose scale is 0 though their rewards differ: first in group "
        f"{first} (rewards {example}). Set epsilon (a config's advantage_epsilon) above 0, or mad_zero to "
        f"what divides instead: {', '.join(choice for choice in MAD_ZERO if choice != 'epsilon')}"
    )


def _check_rewards(rewards: Tensor, name: str, num_generations: int, extra: int) -> None:
    check_floats(rewards)
    if rewards.dim() != 2:
        raise ValueError(f"rewards should have the shape (groups, drawn), not {tuple(rewards.shape)}")
    drawn = num_generations + extra
    if num_generations < 2 or rewards.size(1) != drawn:
        raise ValueError(
            f"estimator {name!r} with num_generations={num_generations} needs {num_generations} + "
            f"{extra} = {drawn} rollouts a group (and num_generations at least 2), "
            f"but rewards has shape {tuple(rewards.shape)}"
        )
    if torch.isinf(rewards).any():
        raise ValueError("rewards hold an infinite value; return None (NaN) for a rollout that cannot be scored")


def _without_rounding(deviations: Tensor, rewards: Tensor) -> Tensor:
    """0 where the centre of equal rewards is another number by rounding; a scale can be as small as that."""
    largest = rewards.abs().nan_to_num(nan=0.0).amax(dim=1, keepdim=True)
    rounding = torch.finfo(rewards.dtype).eps * rewards.size(1) * largest
    return deviations.masked_fill(~differ(rewards) & (deviations.abs() <= rounding), 0.0)


def check_floats(rewards: Tensor) -> None:
    """Refuse rewards that are no tensor of floats.

    Raises:
        ValueError: with what they are.
    """
    if not isinstance(rewards, Tensor) or not rewards.is_floating_point():
        kind = rewards.dtype if isinstance(rewards, Tensor) else type(rewards).__name__
        raise ValueError(f"rewards should be a tensor of floats, not {kind}")


def _check_part(what: str, part: Tensor, rewards: Tensor, name: str, *shapes: torch.Size) -> None:
    """Refuse a centre or scale that would not be broadcast group by group; the functions may be user-defined."""
    shape = part.shape if isinstance(part, Tensor) else None
    if shape not in ((len(rewards), 1), (1, 1), *shapes):
        found = repr(part) if shape is None else f"of shape {tuple(shape)}"
        raise ValueError(
            f"the {what} of estimator {name!r} should be a tensor of shape ({len(rewards)}, 1), not {found}: "
            "is keepdim=True missing?"
        )


def _check_keep(keep: Tensor, rewards: Tensor, name: str, num_generations: int) -> None:
    if keep.dtype != torch.bool or keep.shape != rewards.shape or (keep.sum(dim=1) != num_generations).any():
        raise ValueError(
            f"the keep rule of estimator {name!r} should return booleans of shape {tuple(rewards.shape)}, exactly "
            f"{num_generations} of them true in each group"
        )
