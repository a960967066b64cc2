"""Does the median help at the smallest G? The answer, the comparisons behind it, and their numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import pandas as pd

from mcgrpo.analyse.frames import accuracies, is_among
from mcgrpo.report import wording
from mcgrpo.report.lost import UNGRADED, Lost
from mcgrpo.report.tables.accuracy import intervals
from mcgrpo.report.tables.comparisons import PairedDifference, at_smallest_g, comparisons
from mcgrpo.study.methods import is_median
from mcgrpo.study.variants import DEFAULT

UNTOLD = "Cannot be told."
METHOD_AT_G = ["setting", "method", "num_generations"]
PLACE = ["setting", "num_generations", "baseline"]


@dataclass(frozen=True)
class Headline:
    """The `question`, its answer in a `word` or two, the counts of verdicts (`told`), and the comparisons.

    `over` is what intervals are taken over; `margin` as in `Cell`; `lost` what is not in these comparisons.
    """

    question: str
    word: str
    told: str
    comparisons: tuple[PairedDifference, ...] = ()
    over: str = ""
    margin: float | None = None
    lost: Lost | None = None


def headline(summary: pd.DataFrame, gains: pd.DataFrame) -> Headline:
    """The answer of a study.

    Args:
        summary: a row per `Cell`.
        gains: a row per `Gain`.
    """
    cells = accuracies(summary, "in")
    medians = at_smallest_g(cells)
    if medians.empty:
        has_median = cells.method.map(is_median).any()
        why = (
            "The study plans no mean-centred method to compare it with."
            if has_median
            else "No median-centred run to compare."
        )
        return Headline("Does the median help here?", "Not asked.", why)
    budgets = " and ".join(f"G={g}" for g in sorted(medians.num_generations.unique()))
    question = f"Does the median help at {budgets} here?"
    rows = tuple(comparisons(summary, gains))
    margin = next(iter(medians.equivalence_margin.dropna()), None)
    word, told = _answer([row for row in rows if not row.is_control], margin)
    told += _of_controls(rows)
    return Headline(question, word, told, rows, _over(medians), margin, _lost(summary, cells, medians))


def _lost(summary: pd.DataFrame, cells: pd.DataFrame, medians: pd.DataFrame) -> Lost:
    """What was lost of the trainings that the answer compares: median-centred, baselines and controls."""
    with_baseline = cells.assign(baseline=cells.baseline.fillna(cells.method))
    names = with_baseline[is_among(with_baseline, medians, PLACE)][METHOD_AT_G].drop_duplicates()
    own = summary[(summary.variant == DEFAULT) & summary.role.isin(("in", "train"))].merge(names, on=METHOD_AT_G)
    total, samples = Lost(), own.measure.str.extract(r"^avg@(\d+)$")[0].astype(float).max()
    by_training = own.groupby(METHOD_AT_G)[["planned", "seeds"]].max()
    total.planned = int(by_training.planned.sum())
    total.missing[""] = total.planned - int(by_training.seeds.sum())
    total.rollouts, total.unscorable = _rollouts(own)
    for verdict in UNGRADED:
        rates = own[(own.measure == f"rate-{verdict}") & own["mean"].notna()]
        completions = rates.seeds * rates.n * (1 + (0 if pd.isna(samples) else samples))
        total.completions = max(total.completions, round(completions.sum()))
        total.ungraded[verdict] = round((rates["mean"] * completions).sum())
    return total


def _rollouts(own: pd.DataFrame) -> tuple[int, int]:
    """Rollouts drawn and rollouts without a reward, over the cells for which both are known."""
    drawn, shares = (own[own.measure == name].set_index(METHOD_AT_G) for name in ("rollouts", "frac_unscorable"))
    totals = pd.concat({"drawn": drawn["mean"] * drawn.seeds, "share": shares["mean"]}, axis=1).dropna()
    return round(totals.drawn.sum()), round((totals.drawn * totals.share).sum())


def _over(medians: pd.DataFrame) -> str:
    """What the intervals are over: a difference may have one shared seed although its cells have several."""
    drawn = medians[medians.difference_low.notna()]
    return intervals(list(drawn.assign(over=drawn.over.where(drawn.difference_seeds > 1, "problems")).itertuples()))


def _answer(rows: list[PairedDifference], margin: float | None) -> tuple[str, str]:
    """Yes, no, in part or not told, and the counts of verdicts."""
    by_word = Counter(row.word for row in rows)
    compared = len(rows) - by_word[wording.MISSING]
    if not compared:
        return "Not known.", f"None of {wording.count(len(rows), 'planned comparison')} has been run."
    words = (*wording.VERDICTS, wording.ONE_SEED, "no interval")
    kinds = [kind for kind in words if by_word[kind] or kind in ("better", "worse")]
    counts = ", ".join(f"{by_word[kind]} {_explained(kind, rows, margin)}" for kind in kinds)
    text = f"Of {wording.count(compared, 'comparison')} with the mean (settings, losses, decodings): {counts}."
    missing = by_word.pop(wording.MISSING, 0)
    word = _word(by_word)
    if missing and word != UNTOLD:
        word = f"So far {word[0].lower()}{word[1:]}"
    return word, text + (f" {wording.count(missing, 'planned comparison')} missing." if missing else "")


def _of_controls(rows: Sequence[PairedDifference]) -> str:
    """What the controls gain, beside the medians of the same comparisons."""
    pairs = [(row, after) for row, after in pairwise(rows) if after.is_control]
    pairs = [pair for pair in pairs if not any(pd.isna(each.value) for each in pair)]
    if not pairs:
        return ""
    by_word = Counter({"better": 0, "worse": 0})
    by_word.update(control.word for _, control in pairs)
    counts = ", ".join(f"{number} {word}" for word, number in by_word.items())
    as_much = sum(control.value >= row.value for row, control in pairs)
    names = " and ".join(dict.fromkeys(control.method for _, control in pairs))
    return (
        f" The control {names} draws as many rollouts and keeps the mean: of {wording.count(len(pairs), 'comparison')} "
        f"{counts}; its gain is as large as the median's or larger in {as_much}."
    )


def _explained(kind: str, rows: list[PairedDifference], margin: float | None) -> str:
    """A verdict with its qualification."""
    if kind == "equivalent" and margin is not None:
        return f"equivalent (within {wording.count_points(margin)})"
    if kind == "inconclusive":
        seen = [row.detectable for row in rows if row.verdict == kind]
        least, most = (wording.percent(bound(seen)) for bound in (min, max))
        span = wording.count_points(max(seen)) if least == most else f"{least} to {most} points"
        return f"inconclusive (a true difference of {span} could have been seen)"
    return "at one seed, which says nothing of others" if kind == wording.ONE_SEED else kind


def _word(by_word: Counter) -> str:
    """The answer in a word or two."""
    if by_word["better"] and by_word["worse"]:
        return "It depends."
    if by_word["better"]:
        return "Yes." if by_word["better"] == by_word.total() else "In part."
    if by_word["worse"]:
        return "No, it hurts." if by_word["worse"] == by_word.total() else "No, in part it hurts."
    return "No, it makes no difference." if by_word["equivalent"] == by_word.total() else UNTOLD


def markdown(answer: Headline) -> str:
    """The answer on the first line; then a line for each loss and decoding by setting and benchmark."""
    lines = [
        f"**{answer.question}** {answer.word} {answer.told}",
        *(["", f"Lost in these comparisons: {answer.lost}"] if answer.lost else []),
    ]
    for place, rows in groupby(answer.comparisons, key=lambda row: row.place):
        lines += ["", f"**{place}**, difference in accuracy{answer.over}:", ""]
        lines += [f"- {text}" for text in _sentences(rows)]
    return "\n".join(lines) + "\n"


def latex(answer: Headline) -> str:
    """The same as LaTeX."""

    def spell(text: str) -> str:
        return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", wording.escape_latex(text))

    lines = [spell(f"**{answer.question}** **{answer.word}** {answer.told}")]
    lines += ["", spell(f"Lost in these comparisons: {answer.lost}")] if answer.lost else []
    for place, rows in groupby(answer.comparisons, key=lambda row: row.place):
        lines += ["", spell(f"**{place}**, difference in accuracy{answer.over}:")]
        lines += [r"\begin{itemize}", *(rf"\item {spell(text)}" for text in _sentences(rows)), r"\end{itemize}"]
    return "\n".join(lines) + "\n"


def _sentences(rows: Iterable[PairedDifference]) -> Iterator[str]:
    """One sentence for each comparison, followed by its control."""
    rows = list(rows)
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row.is_control:
            continue
        where = f"at G={row.num_generations}, {row.decoding}"
        text = f"**{row.word.capitalize()}** {where}: {row.method} against {row.baseline}{_numbers(row)}."
        if after and after.is_control:
            text += f" Control, {after.method} against {after.baseline}: **{after.word}**{_numbers(after)}."
        yield text


def _numbers(row: PairedDifference) -> str:
    """The difference, the detectable one, the published one, and every seed."""
    if pd.isna(row.value):
        return ""
    parts = [f", {row.text.replace(' ', ' points ', 1)}"]
    if row.verdict == "inconclusive":
        parts.append(f"{wording.count_points(row.detectable)} could have been seen")
    if row.excludes is not None:
        published = wording.points(row.published, 2)
        parts.append(f"the paper's {published} is {'excluded' if row.excludes else 'not excluded'}")
    if row.gains:
        name = "seed" if row.seeds == 1 else "seeds"
        parts.append(f"{name} {', '.join(map(wording.points, row.gains))}")
    return "; ".join(parts)
