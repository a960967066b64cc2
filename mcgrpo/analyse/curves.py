"""The course of a training, from its metrics: the rows of curves.csv, and what they amount to."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from statistics import stdev
from typing import Any

from mcgrpo.analyse.records import CurvePoint
from mcgrpo.records import Run, RunKey

COLUMNS = {
    "reward": "drawn/reward",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "kl": "kl",
    "entropy": "entropy",
    "completion_length": "completions/mean_length",
    "advantage_abs_max": "advantage/abs_max",
    "frac_scale_zero": "advantage/frac_scale_zero",
    "frac_scale_zero_signal": "advantage/frac_scale_zero_signal",
    "frac_advantage_zero": "advantage/frac_zero",
    "frac_groups_zero": "advantage/frac_groups_zero",
    "kl_l1_share_logps": "gradient/kl_l1_share_logps",
    "flips_mean_median": "flips/mean_median",
    "flips_loo_mean": "flips/loo_mean",
    "flips_loo_median": "flips/loo_median",
    "seconds_generation": "seconds/generation",
    "seconds_rewards": "seconds/rewards",
    "seconds_logprobs": "seconds/logprobs",
    "seconds_update": "seconds/update",
}
"""Columns of curves.csv, and the names they are logged under in metrics.jsonl."""


def cell(run: Run) -> dict[str, Any]:
    """The columns that say which run a row belongs to."""
    return {field.name: getattr(run, field.name) for field in fields(RunKey)}


def curve(run: Run, metrics: list[dict[str, Any]]) -> list[CurvePoint]:
    """The rows of one run in curves.csv."""
    return [
        CurvePoint(**cell(run), step=row["step"], **{column: row.get(name) for column, name in COLUMNS.items()})
        for row in metrics
    ]


def training_measures(points: list[CurvePoint], seconds: float) -> Iterator[tuple[str, float]]:
    """The measures of a training: its seconds, and means over steps (of the reward: over the last tenth).

    Values that are not finite (a gradient that overflowed) are left out.
    """
    yield "seconds", seconds
    rewarded = [point for point in points if point.reward is not None]  # only steps that generate, of num_iterations
    for measure, column, over in (
        ("reward", "reward", rewarded[-max(1, len(rewarded) // 10) :]),
        ("frac_scale_zero", "frac_scale_zero", points),
        ("frac_scale_zero_signal", "frac_scale_zero_signal", points),
        ("frac_advantage_zero", "frac_advantage_zero", points),
        ("frac_groups_zero", "frac_groups_zero", points),
        ("advantage_abs_max", "advantage_abs_max", points),
        ("kl_l1_share_logps", "kl_l1_share_logps", points),
        ("flips_mean_median", "flips_mean_median", points),
        ("flips_loo_mean", "flips_loo_mean", points),
        ("flips_loo_median", "flips_loo_median", points),
        ("grad_norm", "grad_norm", points),
    ):
        logged = [value for point in over if (value := getattr(point, column)) is not None]
        values = [value for value in logged if math.isfinite(value)]
        if values:
            yield measure, sum(values) / len(values)
    if (steady := unsteadiness([point.reward for point in rewarded])) is not None:
        yield "reward_unsteadiness", steady


def unsteadiness(rewards: Sequence[float]) -> float | None:
    """How much a curve jumps: the standard deviation of its steps' differences, over the square root of 2.

    For a level curve with independent noise it is the noise's standard deviation; None for fewer than 3 steps.
    """
    jumps = [after - before for before, after in pairwise(rewards) if math.isfinite(after - before)]
    return stdev(jumps) / math.sqrt(2) if len(jumps) > 1 else None
