"""Requirements on the cost of a step, judged from the rows of the benchmark."""

from typing import Any

import pandas as pd

NOISE = 1.05
"""Two timings of the same thing differ by up to this factor on a shared machine."""
Row = dict[str, Any]


def verdicts(rows: list[Row]) -> list[tuple[str, bool]]:
    """Each requirement with its numbers, and whether it holds; over the cases with beta = 0 and the study's rewards."""
    found = []
    for size, here in plain_cases(rows).items():
        theirs, more = here["trl"], here["trl-plus1"]
        extra = sum(more[phase] - theirs[phase] for phase in ("generation", "rewards"))
        allowed = NOISE * theirs["seconds"] + max(extra, 0.0)
        for name in ("mean", "mean-compact"):
            found.append(judged(f"G={size}: {name}", here[name], NOISE * theirs["seconds"], "TRL's mean x 1.05"))
        for name in ("mc", "mc-compact"):
            found.append(judged(f"G={size}: {name}", here[name], allowed, "TRL's mean x 1.05 + the extra rollout"))
        if size == 4:
            found.append(judged("G=4: mc-compact", here["mc-compact"], theirs["seconds"], "TRL's mean"))
    return found


def judged(who: str, row: Row, bound: float, what: str) -> tuple[str, bool]:
    """A requirement in words, and whether it holds."""
    seconds = row["seconds"]
    return f"{who} takes {1000 * seconds:.1f} ms a step, at most {1000 * bound:.1f}: {what}", seconds <= bound


def plain_cases(rows: list[Row]) -> dict[int, dict[str, Row]]:
    """G -> contender -> row, of the cases without a penalty or forced lengths."""
    found: dict[int, dict[str, Row]] = {}
    for row in rows:
        if row["beta"] == 0 and row["num_iterations"] == 1 and pd.isna(row["completion_length"]):
            found.setdefault(row["num_generations"], {})[row["contender"]] = row
    return found
