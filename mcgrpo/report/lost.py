"""What was drawn or graded in a study without counting, in one sentence."""

import pandas as pd

from mcgrpo.records import CELL
from mcgrpo.report import wording

UNGRADED = {"unparseable": "unparseable", "timeout": "timed out in grading", "error": "failed in grading"}
"""Verdicts that are neither right nor wrong, in words."""


def lost(summary: pd.DataFrame) -> str:
    """Finished trainings, rollouts without a reward, and completions that could not be graded.

    Rollouts and completions are those of finished trainings: what was not run has lost nothing.
    """
    trained = summary[(summary.role == "train") & (summary.measure == "seconds")]
    planned, finished = int(trained.planned.sum()), int(trained.seeds.sum())
    parts = [f"{finished} of {wording.count(planned, 'training')} finished"] if planned else []
    drawn, unscorable = _rollouts(summary[summary.role == "train"])
    parts += [f"of {drawn:,} rollouts {unscorable:,} without a reward"] if drawn else []
    rates = summary[summary.role.isin(("in", "out")) & summary["mean"].notna()]
    samples = rates.measure.str.extract(r"^avg@(\d+)$")[0].astype(float).max()
    told = []
    for verdict, word in UNGRADED.items():
        rows = rates[rates.measure == f"rate-{verdict}"]
        completions = rows.seeds * rows.n * (1 + (0 if pd.isna(samples) else samples))
        told += [(round(completions.sum()), f"{round((rows['mean'] * completions).sum()):,} {word}")]
    if graded := max(total for total, _ in told):
        parts.append(f"of {graded:,} graded completions {', '.join(text for _, text in told)}")
    return f"{'; '.join(parts or ['nothing was trained'])}."


def _rollouts(trained: pd.DataFrame) -> tuple[int, int]:
    """Rollouts drawn and rollouts without a reward, over the cells for which both are known."""
    drawn, shares = (trained[trained.measure == name].set_index([*CELL]) for name in ("rollouts", "frac_unscorable"))
    totals = pd.concat({"drawn": drawn["mean"] * drawn.seeds, "share": shares["mean"]}, axis=1).dropna()
    return round(totals.drawn.sum()), round((totals.drawn * totals.share).sum())
