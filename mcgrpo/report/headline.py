"""Does the median help at the smallest G? One line that answers, then a sentence for each loss, with its control."""

from collections import Counter

import pandas as pd

from mcgrpo.frames import DECODINGS, accuracies, is_median
from mcgrpo.methods import METHODS
from mcgrpo.report.accuracy import intervals
from mcgrpo.report.wording import count, interval, label
from mcgrpo.stats import verdict

VERBS = {
    "above": "beats",
    "below": "falls behind",
    "indistinguishable": "is indistinguishable from",
    "unknown": "cannot be told (no interval) from",
}


def headline(summary: pd.DataFrame) -> str:
    """Markdown: the answer on its first line; under each setting and benchmark a sentence for each loss and decoding.

    All at the smallest G that the study plans for the method, with the intervals of the summary.
    """
    cells = accuracies(summary, "in")
    medians = at_least_g(cells)
    if medians.empty:
        return "No median-centred run to compare.\n"
    lines = [_answer(medians)]
    for (setting, benchmark), rows in medians.groupby(["setting", "benchmark"], sort=False):
        found = intervals(list(rows.itertuples()))
        lines += ["", f"**{setting} on {benchmark}**, accuracy{found}:", ""]
        order = rows.method.map(list(METHODS).index) * len(DECODINGS) - rows.decoding.map(DECODINGS.index)
        rows = rows.loc[order.sort_values().index]
        run = rows["mean"].notna()
        lines += [f"- {_sentence(cell, control(cells, cell))}" for _, cell in rows[run].iterrows()]
        lines += [f"- Missing: {', '.join(map(label, rows[~run].method.unique()))}."] if not run.all() else []
    return "\n".join(lines) + "\n"


def at_least_g(cells: pd.DataFrame) -> pd.DataFrame:
    """Of accuracies, the median-centred ones at the smallest G of each method: what the answer is about."""
    medians = cells[cells.method.map(is_median).astype(bool)]
    smallest = medians.groupby(["setting", "benchmark", "method"]).num_generations.transform("min")
    return medians[medians.num_generations == smallest]


def _answer(medians: pd.DataFrame) -> str:
    """The first line: yes, no, in part or not told, and the comparisons that say so."""
    budgets = " and ".join(f"G={g}" for g in sorted(medians.num_generations.unique()))
    question = f"**Does the median help at {budgets} here?**"
    medians = medians[medians.baseline.notna()]
    if medians.empty:
        return f"{question} Not asked: the study plans no mean-centred method to compare it with."
    compared = medians[medians.difference.notna()]
    if compared.empty:
        return f"{question} Not known: none of {count(len(medians), 'planned comparison')} has been run."
    pairs = zip(compared.difference_low, compared.difference_high, strict=True)
    found = Counter(verdict(low, high) for low, high in pairs)
    told = ", ".join(
        f"{word} in {found[kind]}" for kind, word in WORDS.items() if found[kind] or kind in ("above", "below")
    )
    missing = len(medians) - len(compared)
    left = f" {count(missing, 'planned comparison')} missing." if missing else ""
    text = f"Of {count(len(compared), 'comparison')} with the mean (settings, losses, decodings) it is {told}."
    return f"{question} {_word(found)} {text}{left}"


WORDS = {
    "above": "better",
    "below": "worse",
    "indistinguishable": "indistinguishable",
    "unknown": "without an interval",
}


def _word(found: Counter) -> str:
    """The answer in a word or two."""
    if found["above"] and found["below"]:
        return "It depends."
    if found["above"]:
        return "Yes." if found["above"] == found.total() else "In part."
    if found["below"]:
        return "No, it hurts." if found["below"] == found.total() else "No, in part it hurts."
    return "Cannot be told." if found["unknown"] else "Not measurably."


def _claim(cell: pd.Series) -> str:
    baseline = f"the mean ({label(METHODS[cell.method].baseline)})"
    if pd.isna(cell.difference):
        return f"has no run of {baseline} to be compared with"
    bounds = (cell.difference, cell.difference_low, cell.difference_high)
    told = count(cell.difference_seeds, "seed")
    return f"{VERBS[verdict(*bounds[1:])]} {baseline}: {interval(*bounds)} ({told})"


def _sentence(cell: pd.Series, control: pd.DataFrame) -> str:
    how = f"sampled ({cell.measure})" if cell.decoding == "sampled" else "greedy"
    text = f"At G={cell.num_generations}, {how}, the median ({label(cell.method)}) {_claim(cell)}"
    if control.empty:
        return f"{text}."
    beside = control.iloc[0]
    return f"{text}; the mean over as many rollouts, the control ({label(beside.method)}), {_claim(beside)}."


def control(cells: pd.DataFrame, cell: pd.Series) -> pd.DataFrame:
    """The cells beside a median-centred one that share its baseline without being median-centred: one row or none."""
    same = ["setting", "benchmark", "num_generations", "measure", "baseline"]
    beside = cells[(cells[same] == cell[same]).all(axis=1)]
    return beside[~beside.method.map(is_median)]
