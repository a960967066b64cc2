"""Rewards, advantages and keep masks of a training against what its metrics say of them, step by step."""

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcgrpo.files import iter_json_lines, read_jsonl
from mcgrpo.records import Group, Run

GROUPS, METRICS = "groups.jsonl", "metrics.jsonl"
TOLERANCE = 1e-5
"""Metrics are means in single precision."""
ADVANTAGE_TOLERANCE = 1e-4
"""Relative; of what metrics say of advantages."""


def disagreements(folder: Path, run: Run) -> Iterator[str]:
    """What the groups of a run say otherwise than its metrics; without a file of groups, that.

    Of every step: the mean reward, and the share of rollouts without one. Of every step that takes one batch, all of
    it with rewards: the largest |A| of the rows that are kept, and the share of those with A = 0. Of every group: as
    many advantages, lengths and marks as rewards, and G of them kept.

    Args:
        folder: of the run.
        run: as planned.

    Raises:
        RecordError: for a line of either file that cannot be read.
    """
    path = folder / GROUPS
    if not path.is_file():
        yield f"{path}: no such file"
        return
    steps: dict[int, list[Group]] = defaultdict(list)
    for line, group in enumerate(read_jsonl(path, Group), 1):
        steps[group.step].append(group)
        if {len(group.advantages), len(group.kept), len(group.lengths)} != {len(group.rewards)}:
            yield f"{path}:{line}: not as many advantages, marks and lengths as rewards"
        if sum(group.kept) != run.num_generations:
            yield f"{path}:{line}: {sum(group.kept)} rollouts kept of G={run.num_generations}"
    logged = {row["step"]: row for _, row in iter_json_lines(folder / METRICS) if "drawn/reward" in row}
    for step in sorted(steps.keys() | logged.keys()):
        if step not in steps or step not in logged:
            yield f"{path}: step {step} is only in {METRICS if step in logged else GROUPS}"
            continue
        for odd in _odd(steps[step], logged[step], takes_one_batch(run)):
            yield f"{path}: step {step}: {odd} is not that of {METRICS}"


def takes_one_batch(run: Run) -> bool:
    """Whether no optimizer step takes the rollouts of two generation batches; metrics are then not means of theirs."""
    accumulation = run.training.get("gradient_accumulation_steps", 1)
    generated = run.training.get("steps_per_generation", accumulation) * run.training.get("num_iterations", 1)
    return generated >= accumulation


def _odd(groups: list[Group], logged: dict[str, Any], one_batch: bool) -> Iterator[str]:
    rewards = [reward for group in groups for reward in group.rewards]
    scored = [reward for reward in rewards if reward is not None]
    if not math.isclose(1 - len(scored) / len(rewards), logged["drawn/frac_unscorable"], abs_tol=TOLERANCE):
        yield "the share of rollouts without a reward"
    # Of several batches a step, the mean of their means was logged: another one where some rollouts have no reward
    if len(scored) < len(rewards):
        return
    mean = sum(scored) / len(scored)
    if not math.isclose(mean, logged["drawn/reward"], rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        yield "the mean reward"
    if one_batch:
        yield from _odd_advantages(groups, logged)


def _odd_advantages(groups: list[Group], logged: dict[str, Any]) -> Iterator[str]:
    pairs = [pair for group in groups for pair in zip(group.advantages, group.kept, strict=False)]
    sizes = [math.nan if advantage is None else abs(advantage) for advantage, kept in pairs if kept]
    found = {
        "advantage/abs_max": ("the largest advantage", max(sizes, default=0.0)),
        "advantage/frac_zero": ("the share of advantages that are 0", sizes.count(0.0) / max(len(sizes), 1)),
    }
    for key, (name, value) in found.items():
        if not math.isclose(value, logged[key], rel_tol=ADVANTAGE_TOLERANCE):
            yield name
