"""The course of a training, from its metrics: the rows of curves.csv, and what they amount to."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Any

from mcgrpo.analyse.records import LOGGED, CurvePoint
from mcgrpo.grade.rewards import is_accurate
from mcgrpo.records import CELL, VERDICTS, Run

MEANS = (
    "reward", "reward_first", "grad_norm", "frac_unscorable", "advantage_abs_max", "frac_scale_zero",
    "frac_scale_zero_signal", "frac_advantage_zero", "frac_groups_zero", "frac_effective", "kl_l1_share_logps",
    "flips_mean_median", "flips_loo_mean", "flips_loo_median", "clip_ratio",
)  # fmt: skip
"""Columns whose mean over all steps is a measure of the training, under the same name."""
CURVE_NAMES = (
    *MEANS,
    "entropy_first",
    "entropy_last",
    "frac_grad_clipped",
    "reward_unsteadiness",
    "rollouts",
    "seconds",
    "seconds_per_step",
)
"""What the measures of a training are called."""
PHASES = tuple(column for column in LOGGED if column.startswith("seconds_"))
"""The phases of a step; their seconds are those of the step."""


def of_run(run: Run) -> dict[str, Any]:
    """The columns that say which run a row belongs to."""
    return {name: getattr(run, name) for name in (*CELL, "seed")}


def curve(run: Run, metrics: list[dict[str, Any]], rollouts: Mapping[int, int]) -> list[CurvePoint]:
    """The rows of one run in curves.csv.

    Args:
        run: the training.
        metrics: rows of its metrics.jsonl.
        rollouts: step -> rollouts that were drawn for it, over all processes.
    """
    return [
        CurvePoint(
            **of_run(run),
            step=row["step"],
            rollouts=float(rollouts[row["step"]]) if row["step"] in rollouts else None,
            accuracy=accuracy(row),
            **{column: row.get(name) for column, name in LOGGED.items()},
        )
        for row in metrics
    ]


def accuracy(row: dict[str, Any]) -> float | None:
    """The accurate share of the rollouts drawn for a step, from its mean counts of verdicts; None without any."""
    verdicts = {verdict: row[f"verdicts/{verdict}"] for verdict in VERDICTS if f"verdicts/{verdict}" in row}
    total = sum(verdicts.values())
    accurate = sum(count for verdict, count in verdicts.items() if is_accurate(verdict))
    return accurate / total if total else None


def training_measures(points: list[CurvePoint], seconds: float, max_grad_norm: float = 1.0) -> dict[str, float]:
    """The measures of a training: its seconds, and means over steps (of the reward: over those that generate).

    `entropy_first` and `entropy_last` are means over the first and the last tenth of the steps that have one (at least
    one step), `reward_unsteadiness` is that of `reward_first`, `rollouts` the sum over steps, `frac_grad_clipped` the
    share of steps whose gradient norm is above `max_grad_norm`. Values that are not finite (a gradient that overflowed)
    are left out of means.
    """

    def of(column: str) -> list[float]:
        return [value for point in points if (value := getattr(point, column)) is not None]

    found = {"seconds": seconds}
    # Medians over steps, which a pause does not change. Not every step has every phase: of several updates, the first
    # generates. Such a phase counts by its share of steps.
    if step := sum(median(logged) * len(logged) / len(points) for phase in PHASES if (logged := of(phase))):
        found["seconds_per_step"] = step
    if counts := of("rollouts"):
        found["rollouts"] = sum(counts)
    if norms := of("grad_norm"):
        found["frac_grad_clipped"] = sum(not norm <= max_grad_norm for norm in norms) / len(norms)
    for measure in MEANS:
        if values := [value for value in of(measure) if math.isfinite(value)]:
            found[measure] = sum(values) / len(values)
    if entropies := of("entropy"):
        tenth = max(len(entropies) // 10, 1)
        found |= {"entropy_first": fmean(entropies[:tenth]), "entropy_last": fmean(entropies[-tenth:])}
    if (steady := unsteadiness(of("reward_first"))) is not None:
        found["reward_unsteadiness"] = steady
    return found


def unsteadiness(rewards: Sequence[float]) -> float | None:
    """How much a curve jumps: the standard deviation of its steps' differences, over the square root of 2.

    For a level curve with independent noise it is the noise's standard deviation; None for fewer than 3 steps.
    """
    jumps = [after - before for before, after in pairwise(rewards) if math.isfinite(after - before)]
    return stdev(jumps) / math.sqrt(2) if len(jumps) > 1 else None
