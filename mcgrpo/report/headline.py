"""One sentence for each loss: what the median does at the smallest G, with the extra-rollout control beside it."""

import pandas as pd

from mcgrpo.frames import DECODINGS, accuracies, is_median
from mcgrpo.methods import METHODS
from mcgrpo.report.wording import interval, label
from mcgrpo.stats import verdict

VERBS = {
    "above": "beats",
    "below": "falls behind",
    "indistinguishable": "is indistinguishable from",
    "unknown": "cannot be told (one seed) from",
}


def _claim(cell: pd.Series) -> str:
    baseline = f"the mean ({label(cell.baseline)})"
    if pd.isna(cell.difference):
        return f"has no run of {baseline} to be compared with"
    bounds = (cell.difference, cell.difference_low, cell.difference_high)
    seeds = f"{cell.difference_seeds} seed" + ("" if cell.difference_seeds == 1 else "s")
    return f"{VERBS[verdict(*bounds[1:])]} {baseline}: {interval(*bounds)} ({seeds})"


def _sentence(cell: pd.Series, control: pd.DataFrame) -> str:
    how = f"sampled ({cell.measure})" if cell.decoding == "sampled" else "greedy"
    text = f"At G={cell.num_generations}, {how}, the median ({label(cell.method)}) {_claim(cell)}"
    if control.empty:
        return f"{text}."
    beside = control.iloc[0]
    return f"{text}; the mean over as many rollouts, the control ({label(beside.method)}), {_claim(beside)}."


def headline(summary: pd.DataFrame) -> str:
    """Markdown: under each setting and benchmark a sentence for each loss and decoding, at the smallest G it has.

    The sentence says which way the difference points, or that the two are indistinguishable.
    """
    cells = accuracies(summary, "in")
    medians = cells[cells.method.map(is_median)]
    if medians.empty:
        return "No median-centred run to compare.\n"
    smallest = medians.groupby(["setting", "benchmark", "method"]).num_generations.transform("min")
    lines = []
    for (setting, benchmark), rows in medians[medians.num_generations == smallest].groupby(["setting", "benchmark"]):
        lines += ["", f"**{setting} on {benchmark}**, accuracy, paired over seeds with 95% t intervals:", ""]
        order = rows.method.map(list(METHODS).index) * len(DECODINGS) - rows.decoding.map(DECODINGS.index)
        for _, cell in rows.loc[order.sort_values().index].iterrows():
            lines.append(f"- {_sentence(cell, _control(cells, cell))}")
    return "\n".join(lines[1:]) + "\n"


def _control(cells: pd.DataFrame, cell: pd.Series) -> pd.DataFrame:
    same = ["setting", "benchmark", "num_generations", "measure", "baseline"]
    beside = cells[(cells[same] == cell[same]).all(axis=1)]
    return beside[~beside.method.map(is_median)]
