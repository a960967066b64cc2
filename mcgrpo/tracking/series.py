"""What a store is told of a training's rows: the metrics that runs are compared by. The files keep all of them.

A metric of a step takes `METRIC_BYTES` in a SQLite store, three quarters of it for indexes.
"""

import re
from collections.abc import Mapping
from typing import Any

from mcgrpo.analyse.curves import COLUMNS

METRIC_BYTES = 300
"""Measured with MLflow 3.17 (288); a test holds it."""
STEP_METRICS = frozenset(
    COLUMNS[column]
    for column in (
        "reward", "loss", "grad_norm", "kl", "entropy", "completion_length", "advantage_abs_max",
        "frac_advantage_zero", "flips_mean_median",
    )
) | {"eval_reward"}  # fmt: skip
_MACHINE = re.compile(r"system/(cpu_utilization|system_memory_usage|gpu_\d+_(utilization|memory_usage))_percentage")
MACHINE_EVERY = 6
"""One row of so many is told: one a minute."""


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a row of `metrics.jsonl` or `system.jsonl` that a store is told; without metrics where it is none."""
    machine = any(name.startswith("system/") for name in row)
    kept = () if machine and row["step"] % MACHINE_EVERY else row
    return {name: row[name] for name in kept if name in STEP_METRICS or _MACHINE.fullmatch(name)} | {
        name: row[name] for name in ("step", "time") if name in row
    }
