"""The advantages of a training, recomputed from its rewards with its own estimator."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mcgrpo.estimators import ESTIMATORS, Ties, clamp_and_diagnose, compute_estimate
from mcgrpo.estimators.diagnostics import diagnose, differ
from mcgrpo.records import Group, Run
from mcgrpo.study import estimators
from mcgrpo.train.faults import apply_faults
from mcgrpo.trainer.flips import inject_flips
from mcgrpo.trainer.packing import MEAN_OF_ROWS

RELATIVE = 1e-4
"""Tolerance of advantages, relative to the largest of their group: single precision, maybe of another processor."""
NOISE = 1e-2
"""Tolerance of advantages in a group of equal rewards: rounding of the mean, divided by an epsilon of 1e-4."""


@dataclass(frozen=True)
class Batch:
    """A recorded generation batch: all (groups, drawn), rewards NaN where there is none."""

    rewards: Tensor
    advantages: Tensor
    kept: Tensor
    lengths: Tensor


def is_known(run: Run) -> bool:
    """Whether the estimator is one of ours; the code of others is not run."""
    return run.estimator in ESTIMATORS


def drawn(run: Run) -> int:
    """Rollouts of a group; 0 if only the code of somebody else's estimator says how many."""
    extra = estimators.planned_extra(run)
    return 0 if extra is None else run.num_generations + extra


def as_batch(groups: Sequence[Group]) -> Batch:
    """The numbers of groups of one size.

    Raises:
        ValueError: for anything but finite single-precision numbers, and `kept` of 0 and 1.
    """
    columns = ("rewards", "advantages", "kept", "lengths")
    if len({len(getattr(group, name)) for group in groups for name in columns}) > 1:
        raise ValueError("not as many advantages, marks and lengths as rewards, or groups of several sizes")
    try:
        rewards = [[math.nan if reward is None else float(reward) for reward in group.rewards] for group in groups]
        floats = [torch.tensor(rows, dtype=torch.float32) for rows in (rewards, [group.advantages for group in groups])]
        whole = [torch.tensor([getattr(group, name) for group in groups]) for name in ("kept", "lengths")]
    except (TypeError, RuntimeError, OverflowError) as error:
        raise ValueError(str(error)) from None
    if len({column.shape for column in (*floats, *whole)}) > 1 or floats[0].dim() != 2:
        raise ValueError("a list stands where a number should be")
    if not floats[1].isfinite().all() or not ((whole[0] == 0) | (whole[0] == 1)).all():
        raise ValueError("an advantage is not finite, or a mark of what is kept neither 0 nor 1")
    return Batch(*floats, whole[0].bool(), whole[1])


def differences(batch: Batch, run: Run, step: int, position: int) -> tuple[list[str], dict[str, float]]:
    """Differences between a batch and what its rewards give, and the metrics that should have been logged.

    Args:
        batch: the recorded batch.
        run: the run that it belongs to.
        step: the optimizer step, from 1, that it was drawn for.
        position: of the batch within that step, see `mcgrpo.study.schedule`.

    Raises:
        ValueError: see `estimate`.
    """
    findings = [f"group {group}: {odd}" for group, odd in _not_g(batch, run)]
    logged: dict[str, Tensor] = {}
    if is_known(run):
        advantages, kept, logged = estimate_as_trained(batch, run, step, position)
        findings += [f"group {group}: {odd}" for group, odd in _compare(batch, advantages, kept)]
    # These from the record: rounding may make an advantage 0 on one processor and not on another
    recorded = diagnose(batch.rewards, None, batch.advantages, batch.kept)
    logged |= {name: value for name, value in recorded.items() if name.startswith("advantage/") or name not in logged}
    logged["completions/mean_length"] = batch.lengths.float().mean()
    return findings, {name: value.item() for name, value in logged.items()}


def ties(run: Run) -> Ties:
    """Which of tied pivots a training drops, see `CompactTrainer.ties`."""
    return "longest" if run.loss_type in MEAN_OF_ROWS and not run.training.get("beta", 0.0) else "first"


def estimate_as_trained(batch: Batch, run: Run, step: int, position: int) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Advantages and kept rows as `MCGRPOTrainer` or `ReleasedTrainer` computes them, and what it logs of them."""
    training = run.training
    estimated = compute_estimate(
        batch.rewards,
        run.estimator,
        run.num_generations,
        lengths=batch.lengths,
        extra_rollouts=training.get("extra_rollouts"),
        epsilon=training.get("advantage_epsilon"),
        mad_zero=training.get("mad_zero", "epsilon"),
        ties=ties(run),
    )
    drop_rule, rescale = training.get("drop_rule", "advantage"), training.get("rescale_by_nonzero", False)
    estimated, flipped = apply_faults(estimated, run.num_generations, drop_rule, rescale), {}
    if rate := training.get("advantage_flip_rate", 0.0):
        rule = training.get("advantage_flip_rule", "bernoulli")
        estimated, share = inject_flips(estimated, rate, rule, f"{run.seed}/{step - 1}/{position}")
        flipped["advantage/frac_flipped"] = share
    estimated, diagnostics = clamp_and_diagnose(estimated, training.get("max_advantage"))
    return estimated.advantages, estimated.keep, diagnostics | flipped


def _not_g(batch: Batch, run: Run) -> Iterator[tuple[int, str]]:
    for group, count in enumerate(batch.kept.sum(dim=1).tolist()):
        if count != run.num_generations:
            yield group, f"{count} rollouts are kept of G={run.num_generations}"


def _compare(batch: Batch, advantages: Tensor, kept: Tensor) -> Iterator[tuple[int, str]]:
    largest = advantages.abs().amax(dim=1, keepdim=True)
    tolerance = torch.where(differ(batch.rewards), RELATIVE * largest + 1e-6, NOISE)
    for group in ((batch.advantages - advantages).abs() > tolerance).any(dim=1).nonzero().flatten().tolist():
        yield group, "its advantages are not those of its rewards"
    for group in (batch.kept != kept).any(dim=1).nonzero().flatten().tolist():
        odd = batch.kept[group] != kept[group]
        sizes, rewards = advantages[group].abs()[odd], batch.rewards[group][odd]
        # Equal distances to the centre from either side of it, up to rounding
        tied = sizes.max() - sizes.min() <= RELATIVE * largest[group] and not (rewards == rewards[0]).all()
        if not tied:
            yield group, "the rollouts that are kept are not those of its rewards"
