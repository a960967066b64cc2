"""A small synthetic study for the tests of summary, tables and figures: scores and curves with known effects."""

from pathlib import Path

import pandas as pd

from mcgrpo.files import write_csv
from mcgrpo.frames import read_frame
from mcgrpo.records import Cell, CurvePoint, Score
from mcgrpo.summarise import summarise

NOISE = (-0.02, 0.0, 0.02)
"""One value per seed: shared by all methods, so that paired differences are exact."""


def score(method, budget, seed, value, *, measure="greedy", benchmark="sums", role="in", setting="toy_a", **other):
    fields = {"variant": "default", "n": 100} | other
    return Score(
        setting, method, budget, seed=seed, benchmark=benchmark, role=role, measure=measure, value=value, **fields
    )


def cell_scores(method, budget, mean, wobble=(0.0, 0.0, 0.0), **other):
    """A score for each seed: mean + shared noise + the method's own wobble."""
    return [score(method, budget, s, mean + NOISE[s] + wobble[s], **other) for s in range(len(NOISE))]


def seconds(method, budget, value):
    return score(method, budget, 0, value, measure="seconds", benchmark="train", role="train", n=40)


def study() -> list[Score]:
    """MC-GRPO: better at G=2 (sampled), worse greedy, missing at G=4; the control: indistinguishable from GRPO."""
    jitter = (-0.001, 0.0, 0.001)
    rows = [score("none", 0, 0, 0.3), score("none", 0, 0, 0.1, measure="avg@4")]
    for budget in (2, 4):
        rows += cell_scores("grpo", budget, 0.5) + cell_scores("grpo", budget, 0.4, measure="avg@4")
        rows += [seconds("grpo", budget, 10.0 * budget)]
    rows += cell_scores("mc-grpo", 2, 0.44, jitter) + cell_scores("mc-grpo", 2, 0.45, jitter, measure="avg@4")
    wide = (-0.1, 0.0, 0.1)
    rows += cell_scores("grpo-plus1", 2, 0.51, wide) + cell_scores("grpo-plus1", 2, 0.41, wide, measure="avg@4")
    return [*rows, seconds("mc-grpo", 2, 23.0), seconds("grpo-plus1", 2, 24.0)]


def write_scores(folder: Path, rows: list[Score]) -> Path:
    write_csv(folder / "scores.csv", Score, rows)
    return folder / "scores.csv"


def summary_of(folder: Path, rows: list[Score]) -> pd.DataFrame:
    """The summary as every reader gets it: through the file."""
    write_csv(folder / "summary.csv", Cell, summarise(read_frame(write_scores(folder, rows), Score)))
    return read_frame(folder / "summary.csv", Cell)


def curve_points(methods=("grpo", "mc-grpo"), budgets=(2, 4), seeds=3, steps=20) -> list[CurvePoint]:
    return [
        CurvePoint("toy_a", method, budget, "default", seed, step, 0.05 * step + NOISE[seed], *[None] * 12)
        for method in methods
        for budget in budgets
        for seed in range(seeds)
        for step in range(1, steps + 1)
    ]
