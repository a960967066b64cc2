"""What a study found, in lines: questions in words, answers in numbers and verdicts from the study's files.

`readme.py` writes them into README.md and docs/. Nothing here knows which way an answer points.
"""

import math
from collections.abc import Iterable

import pandas as pd

from mcgrpo.analyse.claims import questions
from mcgrpo.analyse.frames import accuracies, read_cells, read_frame, read_records
from mcgrpo.analyse.records import CellSignal, Contrast
from mcgrpo.records import Plan
from mcgrpo.report import wording
from mcgrpo.report.claims.judge import judge
from mcgrpo.report.tables.questions import value
from mcgrpo.report.tables.signal import agreements
from mcgrpo.study.methods import label
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.primary import CONTROL, MEAN, METHOD
from mcgrpo.study.variants import COMPOSITE, DEFAULT, flips_of, is_rival, rival_of

THEMES = {
    "The clipped step?": ("median-clipped", "median-unclipped", "median", "clipping", "clipping-by-median"),
    "The learning rate?": ("best-rate-control", "best-rate-mean", "rate-changes-answer", "high-rate-greedy"),
    "Sharpening or solving?": ("training-solves-more", "median-solves-more"),
    "From a weaker start?": ("weak-greedy", "weak", "weak-solves-more"),
}
"""What config/reviewer.yaml asks, by the ids of its questions."""
ROBUST = r"robust-avg@\d+"
AGAINST_MEAN = f"{label(METHOD)} − {label(MEAN)}"
AGAINST_CONTROL = f"{label(METHOD)} − {label(CONTROL)}"


def of_toys(files: ResultFiles) -> str:
    """The lines of the mini or the reference study."""
    cells = read_cells(files)
    own = accuracies(cells, "in", variant=None)
    sampled, greedy = (own[own.decoding == decoding] for decoding in ("sampled", "greedy"))
    method, control = (of(sampled, name) for name in (METHOD, CONTROL))
    outside = accuracies(cells, "out")
    rivals = sampled[sampled.variant.map(is_rival)]
    flipped = sampled[sampled.variant.map(lambda name: flips_of(name) is not None)]
    answers = {
        "Better than the mean at the same G?": f"{AGAINST_MEAN}: {told(method)}",
        "The median, or the extra rollout?": f"{label(CONTROL)} − {label(MEAN)}: {told(control)}. "
        f"{AGAINST_CONTROL}: {told(method, 'control')}",
        "Decoded greedily?": f"{AGAINST_CONTROL}: {told(of(greedy, METHOD), 'control')}",
        "Graded by `robust`?": f"{AGAINST_CONTROL}: {regraded(cells)} (docs/grading.md has intervals)",
        "With rewards of accuracy and format?": f"{AGAINST_MEAN}: {told(of(sampled, METHOD, COMPOSITE))}",
        "What else could the rollouts buy?": f"{AGAINST_MEAN} at the G at which it draws as many: "
        f"{told(method, 'same_rollouts')}. Against {label(MEAN)} at the same G: {by_variant(rivals)}",
        "Is it stable?": stability(cells),
        "Flipped signs?": f"{label(MEAN)} with a share of its advantages flipped: {by_variant(flipped)}",
        "Does the computed signal predict?": agreements(read_frame(files.signals, CellSignal)),
        "Out of distribution, greedy?": f"{AGAINST_MEAN}: {told(of(outside[outside.decoding == 'greedy'], METHOD))}",
        "Not decided?": undecided(read_records(files.comparisons, Contrast)),
    }
    return bullets(answers)


def of_reviewers(plan: Plan, files: ResultFiles) -> str:
    """The lines of the study of reviewers' questions: the average that decides each, with its verdict."""
    asked = {each.id: each for each in questions(plan.questions)}
    contrasts = read_records(files.comparisons, Contrast)
    rulings = {each.claim.id: each for each in judge([*asked.values()], contrasts, "ours")}
    answers = {}
    for theme, ids in THEMES.items():
        parts = []
        for name in ids:
            (deciding,) = rulings[name].endpoints or rulings[name].findings
            parts.append(f'"{asked[name].says.rstrip(".")}": {value(deciding)}')
        answers[theme] = "; ".join(parts)
    answers["Does the computed signal predict?"] = agreements(read_frame(files.signals, CellSignal))
    return bullets(answers)


def of(cells: pd.DataFrame, method: str, variant: str = DEFAULT) -> pd.DataFrame:
    """The cells of a method under a variant."""
    return cells[(cells.method == method) & (cells.variant == variant)]


def told(cells: pd.DataFrame, field: str = "difference") -> str:
    """A pair of each cell, by G: "G=2 +0.9 [+0.4, +1.4] better (toy-qwen3)"."""
    known = cells[cells[field].notna()].sort_values("num_generations", kind="stable")
    several = known.setting.nunique() > 1
    return "; ".join(
        f"G={size} " + ", ".join(f"{wording.gain(row, field)}{f' ({row.setting})' if several else ''}" for row in rows)
        for size, rows in ((size, own.itertuples()) for size, own in known.groupby("num_generations"))
    ) or wording.MISSING  # fmt: skip


def regraded(cells: pd.DataFrame) -> str:
    """The difference to the control by `robust`, which is in no comparison, by G."""
    return "; ".join(
        f"G={size} " + ", ".join(f"{wording.number(each, 'points')} ({setting})" for (_, setting), each in rows.items())
        for size, rows in to_control(cells, ROBUST).groupby(level=0)
    ) or wording.MISSING  # fmt: skip


def gone_by_robust(cells: pd.DataFrame) -> str:
    """The share of the difference to the control that `robust` does not find, least and most: "28% to 64%"."""
    paper = to_control(cells, r"avg@\d+")
    shares = (1 - to_control(cells, ROBUST) / paper[paper != 0]).dropna()
    return span(100 * shares.agg(["min", "max"]), "{:.0f}%").replace("-", "−") if len(shares) else wording.MISSING


def to_control(cells: pd.DataFrame, measure: str) -> pd.Series:
    """The difference of the means over seeds to the control's, by G and setting, where it is measured."""
    own = cells[(cells.role == "in") & (cells.variant == DEFAULT) & cells.measure.str.fullmatch(measure)]
    means = own.pivot_table(index=["num_generations", "setting"], columns="method", values="mean")
    means = means.reindex(columns=[METHOD, CONTROL])
    return (means[METHOD] - means[CONTROL]).dropna()


def by_variant(cells: pd.DataFrame) -> str:
    """The change by each variant, by G."""
    known = cells[cells.change.notna()].sort_values(["num_generations", "variant"], kind="stable")
    texts = [
        f"{rival_of(row.variant)}, G={row.num_generations} {wording.gain(row, 'change')}" for row in known.itertuples()
    ]
    return "; ".join(texts) or wording.MISSING


def stability(cells: pd.DataFrame) -> str:
    """Of both methods: the range over settings and G of the gradient's norm and of the share of steps clipped."""
    trained = cells[(cells.role == "train") & (cells.variant == DEFAULT)]
    if not {"grad_norm", "frac_grad_clipped"} <= {*trained.measure}:
        return wording.MISSING
    parts = []
    for method in (METHOD, MEAN):
        own = trained[trained.method == method].groupby("measure")["mean"].agg(["min", "max"])
        norm, clipped = span(own.loc["grad_norm"], "{:.3g}"), span(100 * own.loc["frac_grad_clipped"], "{:.0f}")
        parts.append(f"{label(method)}: a gradient of norm {norm}, clipped in {clipped}% of steps")
    sampled = accuracies(cells, "in", variant=None).query("decoding == 'sampled' and collapsed > 0")
    names = [
        f"{row.variant}, {label(row.method)}, G={row.num_generations} ({row.collapsed * row.seeds:.0f} of {row.seeds})"
        for row in sampled.itertuples()
    ]
    return "; ".join([*parts, f"collapsed seeds: {', '.join(names) or 'none'}"])


def span(ends: pd.Series, form: str) -> str:
    """A range of numbers; one number where both ends print the same."""
    low, high = form.format(ends["min"]), form.format(ends["max"])
    return low if low == high else f"{low} to {high}"


def undecided(contrasts: Iterable[Contrast]) -> str:
    """The primary comparisons that are inconclusive, their seeds, and how many would see the margin of equivalence."""
    texts = [
        f"{label(row.method)} − {label(row.other_method)}, {row.setting}, G={row.num_generations}: "
        f"{row.seeds} seeds; of this comparison alone, {seeds_for(row)} would show a difference of "
        f"{wording.count_points(row.equivalence_margin)} with a probability of 80%"
        for row in contrasts
        if row.family.startswith("primary") and row.verdict == "inconclusive" and row.detectable
    ]
    return "; ".join(texts) or "All primary comparisons are decided"


def seeds_for(row: Contrast) -> int:
    """Seeds at which the margin would be `detectable`, which falls as one over the square root of their number."""
    return math.ceil(row.seeds * (row.detectable / row.equivalence_margin) ** 2)


def bullets(answers: dict[str, str]) -> str:
    """A line for each question."""
    return "\n".join(f"- **{name}** {(text or 'Not computed').removesuffix('.')}." for name, text in answers.items())
