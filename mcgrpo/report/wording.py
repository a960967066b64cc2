"""Numbers as tables, figures and sentences print them: percent, points, intervals, verdicts, seeds and problems.

Intervals are always [low, high], since they need not be symmetric. A missing number (None, NaN or pandas' NA) is
"missing", never 0. Minus signs are U+2212.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

MISSING = "missing"
TONES = {"better": "above", "worse": "below", "holds": "above", "fails": "below"}
"""Verdicts that are coloured: significantly above or below zero."""
UNITS = {"percent": (100, "z.{}f"), "points": (100, "+z.{}f"), "": (1, ".3g")}
"""Factor and format of a number by its unit; a fraction in `points` has a sign."""


@dataclass(frozen=True)
class Printed:
    """A printed number, with its interval in brackets, its verdict and a remark, each empty if there is none."""

    value: str
    interval: str = ""
    verdict: str = ""
    note: str = ""

    @property
    def tone(self) -> str:
        """`above`, `below` or empty."""
        return TONES.get(self.verdict, "")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.value, self.interval, self.verdict, self.note)))


def printed(
    value: float, low: float | None = None, high: float | None = None, unit: str = "points", *, verdict: Any = None,
    detectable: float | None = None, notes: Iterable[str] = (),
) -> Printed:  # fmt: skip
    """A number with its interval and its verdict: "+0.6 [−1.8, +3.2] inconclusive (3.4)".

    `percent` and `points` are given as fractions; `detectable` is the smallest difference that would have been seen.
    """
    if pd.isna(value):
        return Printed(MISSING)
    bounds = f"[{number(low, unit)}, {number(high, unit)}]" if pd.notna(low) else ""
    without = "(no interval)" if unit == "points" and not bounds else ""
    word = "" if pd.isna(verdict) else verdict
    seen = [f"({number(detectable, 'percent')})"] if word == "inconclusive" and pd.notna(detectable) else []
    return Printed(number(value, unit), bounds or without, word, " ".join(filter(None, (*seen, *notes))))


def gain(cell: Any, field: str = "difference", note: str = "") -> Printed:
    """A cell's `difference`, `change` or `same_rollouts`; its seeds are told if both cells share fewer than it has."""
    value, low, high, word, seen, pairs, over = (
        getattr(cell, field + part) for part in ("", "_low", "_high", "_verdict", "_detectable", "_seeds", "_over")
    )
    fewer = pd.notna(pairs) and 0 < pairs < cell.seeds
    shared = f"({count(int(pairs), 'shared seed')})" if fewer else ""
    shared = "(seeds unpaired)" if over and over.endswith("unpaired") else shared
    return printed(value, low, high, verdict=word, detectable=seen, notes=(note, shared))


def number(value: float, unit: str, digits: int = 1) -> str:
    """A number in its unit, without the unit's name; "missing" if there is none."""
    factor, form = UNITS[unit]
    return MISSING if pd.isna(value) else f"{factor * value:{form.format(digits)}}".replace("-", "−")


def rollouts(num_generations: int, extra: int | None) -> str:
    """Rollouts drawn per prompt, as the paper prints them: "8", "8+1", and "" for the untrained model."""
    if not num_generations:
        return ""
    return f"{num_generations}" if pd.isna(extra) or not extra else f"{num_generations}+{extra:.0f}"


def about_verdicts(margin: float | None) -> str:
    """The meaning of the four verdicts, for a caption; `margin` as in `Contrast.equivalence_margin`."""
    within = "the study's margin" if pd.isna(margin) else count_points(margin)
    return (
        "Better, worse: by one-sided tests at 2.5%, one in each direction. Equivalent: neither, and the difference "
        f"lies within {within} by two one-sided tests at 5%. Inconclusive (d): none of these; of one comparison, a "
        "true difference of d points would have been seen with a probability of 80%."
    )


FAMILIES = (
    "Verdicts are corrected (Holm, each direction on its own) within the first table that shows a difference, for all "
    "that it shows, and are exploratory; those of the primary comparisons are the answer's. Their tests have no more "
    "degrees of freedom than the seeds, less one: with two seeds hardly anything is better or worse."
)
"""Within what the verdicts of tables are corrected, for a caption."""


def count_points(fraction: float) -> str:
    """An unsigned difference: "1 point", "3.4 points"."""
    text = f"{100 * fraction:.1f}".removesuffix(".0")
    return f"{text} point" if text == "1" else f"{text} points"


def span(values) -> str:
    """The range of whole numbers: "5", or "1 to 5"."""
    low, high = int(min(values)), int(max(values))
    return f"{low}" if low == high else f"{low} to {high}"


def counts(values, noun: str) -> str:
    """The range of counts with their noun: "1 seed", "1 to 5 seeds"."""
    text = span(values)
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def count(n: int, noun: str) -> str:
    """A number with its noun: "1 seed", "2 seeds"."""
    return counts([n], noun)


def seeds(there: int, planned: int) -> str:
    """The seeds of a cell: "5", or "3/5" if not all planned ones are finished."""
    return f"{there}" if there == planned else f"{there}/{planned}"


def intervals(cells: pd.DataFrame) -> str:
    """What the intervals of cells are taken over, for a caption; empty without any."""
    over = set(cells.over.dropna())
    if not over:
        return ""
    if over == {"problems"}:
        return ", with its 95% interval over problems only: there is one seed"
    text = f", with its 95% interval over {sorted(over - {'problems'}, key=len)[-1]}"
    return f"{text} (over problems only where there is one seed)" if "problems" in over else text


def sizes(cells: pd.DataFrame) -> str:
    """The n of cells: "512 problems on two-step; 5 seeds planned, 0 to 3 there"."""
    tested = cells[cells.n.notna()]
    problems = [f"{counts(rows.n, 'problem')} on {name}" for name, rows in tested.groupby("benchmark", sort=False)]
    trained = cells[cells.num_generations > 0] if (cells.num_generations > 0).any() else cells
    text = counts(trained.planned, "seed")
    there = "" if (trained.planned == trained.seeds).all() else f" planned, {span(trained.seeds)} there"
    return f"{', '.join(problems or ['no problem evaluated'])}; {text}{there}"
