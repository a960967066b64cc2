"""Requirements on the cost of a step, judged from the rows of the benchmark."""

import pandas as pd

NOISE = 1.05
"""Two timings of the same thing differ by up to this factor on a shared machine."""


def verdicts(frame: pd.DataFrame) -> list[tuple[str, bool]]:
    """Each requirement with its numbers, and whether it holds; over the cases with beta = 0 and the study's rewards."""
    plain = frame[(frame["beta"] == 0) & (frame["num_iterations"] == 1) & frame["completion_length"].isna()]
    found = []
    for size, here in plain.set_index("contender").groupby("num_generations"):
        seconds, drawing = here["seconds"], here["generation"] + here["rewards"]
        allowed, extra = NOISE * seconds["trl"], max(drawing["trl-plus1"] - drawing["trl"], 0.0)
        for name in ("mean", "mean-compact"):
            found.append(judged(f"G={size}: {name}", seconds[name], allowed, "TRL's mean x 1.05"))
        for name in ("mc", "mc-compact"):
            what = "TRL's mean x 1.05 + the extra rollout"
            found.append(judged(f"G={size}: {name}", seconds[name], allowed + extra, what))
        if size == 4:
            found.append(judged("G=4: mc-compact", seconds["mc-compact"], seconds["trl"], "TRL's mean"))
    return found


def judged(who: str, seconds: float, bound: float, what: str) -> tuple[str, bool]:
    """A requirement in words, and whether it holds."""
    return f"{who} takes {1000 * seconds:.1f} ms a step, at most {1000 * bound:.1f}: {what}", seconds <= bound
