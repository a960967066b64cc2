"""The advantages of a training, computed again from its rewards with its own estimator."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from mcgrpo.estimators import ESTIMATORS, clamp_and_diagnose, compute_estimate
from mcgrpo.estimators.diagnostics import differ
from mcgrpo.files import RecordError, as_record, iter_json_lines
from mcgrpo.records import Group, Run
from mcgrpo.study.paths import GROUPS, METRICS
from mcgrpo.study.schedule import Schedule
from mcgrpo.train.faults import apply_faults
from mcgrpo.trainer.flips import inject_flips
from mcgrpo.trainer.packing import MEAN_OF_ROWS

REWARD = "drawn/reward"
RELATIVE = 1e-4
"""Tolerance of advantages, relative to the largest of their group: single precision, maybe of another processor."""
TOLERANCE = {"rel_tol": RELATIVE, "abs_tol": 1e-5}
"""That of the mean reward of a step."""
NOISE = 1e-2
"""Tolerance of advantages in a group of equal rewards: rounding of the mean, divided by an epsilon of 1e-4."""


def disagreements(folder: Path, run: Run, planned: Schedule) -> Iterator[str]:
    """Where the groups of a training are not those of its schedule and of its rewards.

    Args:
        folder: of the run.
        run: as planned.
        planned: the schedule of its generation batches.

    Raises:
        RecordError, ValueError: for a file that cannot be read.
    """
    logged = [row for _, row in iter_json_lines(folder / METRICS)]
    if [row.get("step") for row in logged] != list(range(1, planned.steps + 1)):
        yield f"{METRICS}: not a line for each of {planned.steps} steps"
        return
    groups = (as_record(Group, row, where) for where, row in iter_json_lines(folder / GROUPS))
    for step, positions in groupby(planned.generations(), itemgetter(0)):
        means = []
        for _, position in positions:
            batch = list(islice(groups, planned.groups))
            if len(batch) < planned.groups or {group.step for group in batch} != {step}:
                yield f"{GROUPS}: step {step}: not {planned.groups} groups of this step"
                return
            for group in wrong_groups(batch, run, step, position):
                yield f"{GROUPS}: step {step}: group {group}: advantages or kept rows are not those of its rewards"
            scored = [reward for group in batch for reward in group.rewards if reward is not None]
            means += [fmean(scored)] if scored else []
        told = logged[step - 1].get(REWARD)
        if (told is None) == bool(means) or (means and not math.isclose(told, fmean(means), **TOLERANCE)):
            yield f"{METRICS}: step {step}: {REWARD} is not that of {GROUPS}"
    if next(groups, None):
        yield f"{GROUPS}: more than the {planned.steps} steps that are planned"


def wrong_groups(batch: Sequence[Group], run: Run, step: int, position: int) -> list[int]:
    """The indices of groups whose advantages or kept rows do not follow from the rewards of their generation batch.

    Args:
        batch: its groups.
        run: the run that it belongs to; of somebody else's estimator only the number of kept rows is checked.
        step: the optimizer step, from 1, that it was drawn for.
        position: of the batch within that step, see `mcgrpo.study.schedule`.

    Raises:
        RecordError: for numbers that make no batch.
    """
    try:
        rewards = torch.tensor([[math.nan if each is None else each for each in group.rewards] for group in batch])
        advantages = torch.tensor([group.advantages for group in batch])
        kept = torch.tensor([group.kept for group in batch]).bool()
        lengths = torch.tensor([group.lengths for group in batch])
        wrong = kept.sum(dim=1) != run.num_generations
        if run.estimator in ESTIMATORS:  # the code of others is not run
            wrong |= _differ(rewards, advantages, kept, *_as_trained(rewards, lengths, run, step, position))
    except (ValueError, TypeError, RuntimeError) as error:
        raise RecordError(f"{GROUPS}: step {step}: {error}") from None
    return wrong.nonzero().flatten().tolist()


def _as_trained(rewards: Tensor, lengths: Tensor, run: Run, step: int, position: int) -> tuple[Tensor, Tensor]:
    """Advantages and kept rows as `MCGRPOTrainer` or `ReleasedTrainer` computes them."""
    training = run.training
    compact = run.loss_type in MEAN_OF_ROWS and not training.get("beta", 0.0)  # see `CompactTrainer.ties`
    estimated = compute_estimate(
        rewards,
        run.estimator,
        run.num_generations,
        lengths=lengths,
        extra_rollouts=training.get("extra_rollouts"),
        epsilon=training.get("advantage_epsilon"),
        mad_zero=training.get("mad_zero", "epsilon"),
        ties="longest" if compact else "first",
    )
    drop_rule, rescale = training.get("drop_rule", "advantage"), training.get("rescale_by_nonzero", False)
    estimated = apply_faults(estimated, run.num_generations, drop_rule, rescale)
    if rate := training.get("advantage_flip_rate", 0.0):
        rule = training.get("advantage_flip_rule", "bernoulli")
        estimated, _ = inject_flips(estimated, rate, rule, f"{run.seed}/{step - 1}/{position}")
    estimated, _ = clamp_and_diagnose(estimated, training.get("max_advantage"))
    return estimated.advantages, estimated.keep


def _differ(rewards: Tensor, advantages: Tensor, kept: Tensor, wanted: Tensor, keep: Tensor) -> Tensor:
    """Per group of (groups, drawn) tensors: whether what was recorded is not what follows from its rewards."""
    largest = wanted.abs().amax(dim=1, keepdim=True)
    tolerance = torch.where(differ(rewards), RELATIVE * largest + 1e-6, NOISE)
    wrong = ~((advantages - wanted).abs() <= tolerance).all(dim=1)
    for group in (kept != keep).any(dim=1).nonzero().flatten().tolist():
        odd = kept[group] != keep[group]
        sizes, own = wanted[group].abs()[odd], rewards[group][odd]
        # Equal distances to the centre from either side of it, up to rounding
        tied = sizes.max() - sizes.min() <= RELATIVE * largest[group] and not (own == own[0]).all()
        wrong[group] |= not tied
    return wrong
