"""Which metrics of a training are logged: those that runs are compared by. The files keep all of them.

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
"""One row in this number of rows of `system.jsonl` is logged: one a minute."""


def selected(row: Mapping[str, Any]) -> dict[str, Any]:
    """`step`, `time` and the metrics that are logged of a row of `metrics.jsonl` or `system.jsonl`."""
    skipped = row["step"] % MACHINE_EVERY and any(name.startswith("system/") for name in row)
    metrics = [] if skipped else [name for name in row if name in STEP_METRICS or _MACHINE.fullmatch(name)]
    return {name: row[name] for name in (*metrics, "step", "time") if name in row}
