"""Format numbers for tables, figures and sentences: percent, points, intervals, verdicts.

Intervals are always [low, high], since they need not be symmetric. A missing number (None, NaN or pandas' NA) is
"missing", never 0. Minus signs are U+2212.
"""

import typing
from typing import Any

import pandas as pd

from mcgrpo.analyse.records import GainVerdict

MISSING = "missing"
VERDICTS: tuple[GainVerdict, ...] = typing.get_args(GainVerdict)


def rollouts(num_generations: int, extra: int | None) -> str:
    """Rollouts drawn per prompt, as the paper prints them: "8", "8+1", and "" for the untrained model."""
    if not num_generations:
        return ""
    return f"{num_generations}" if pd.isna(extra) or not extra else f"{num_generations}+{extra:.0f}"


def points(fraction: float, digits: int = 1) -> str:
    """A signed difference in percentage points."""
    return f"{100 * fraction:+z.{digits}f}".replace("-", "−")


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction in percent, without the sign; "missing" if there is none."""
    return MISSING if pd.isna(fraction) else f"{100 * fraction:z.{digits}f}".replace("-", "−")


def accuracy(mean: float, low: float, high: float) -> str:
    """A fraction in percent with its interval: "86.4 [85.1, 87.7]", or "86.4" if it has none."""
    text = percent(mean)
    return text if pd.isna(mean) or pd.isna(low) else f"{text} [{percent(low)}, {percent(high)}]"


def signed(difference: float, low: float, high: float) -> str:
    """A difference in points with its interval: "+4.4 [+2.1, +6.7]", or "+4.4 (no interval)"."""
    if pd.isna(difference):
        return MISSING
    bounds = "(no interval)" if pd.isna(low) else f"[{points(low)}, {points(high)}]"
    return f"{points(difference)} {bounds}"


def gain(cell: Any, field: str = "difference") -> str:
    """A cell's `difference` or `change` as `signed`, and its verdict: "+0.6 [−1.8, +3.2] inconclusive (3.4)".

    The number in brackets is the smallest detectable difference, in points.
    """
    text = signed(*(getattr(cell, field + part) for part in ("", "_low", "_high")))
    word, seen = getattr(cell, f"{field}_verdict"), getattr(cell, f"{field}_detectable")
    if pd.isna(word):
        return text
    return f"{text} {word} ({percent(seen)})" if word == "inconclusive" else f"{text} {word}"


def about_verdicts(margin: float | None) -> str:
    """The meaning of the four verdicts, for a caption; `margin` as in `Cell.equivalence_margin`."""
    within = "the study's margin" if pd.isna(margin) else count_points(margin)
    return (
        "Better, worse: the 95% interval excludes 0. Equivalent: it does not, and the difference lies within "
        f"{within} by two one-sided tests at 5%. Inconclusive (d): neither; a true difference of d points would have "
        "been seen with a probability of 80%."
    )


def count_points(fraction: float) -> str:
    """An unsigned difference: "1 point", "3.4 points"."""
    text = f"{100 * fraction:.1f}".removesuffix(".0")
    return f"{text} point" if text == "1" else f"{text} points"


def seconds(value: float) -> str:
    """Seconds, with one decimal below 100."""
    if pd.isna(value):
        return MISSING
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def seeds(there: int, planned: int) -> str:
    """The seeds of a cell: "5", or "3/5" if not all planned ones are finished."""
    return f"{there}" if there == planned else f"{there}/{planned}"


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
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


LATEX = {character: rf"\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "ρ": r"$\rho$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    ">": "$>$",
    "<": "$<$",
}


def escape_latex(text: str) -> str:
    """Escape plain text for LaTeX."""
    return text.translate(str.maketrans(LATEX))
