"""The first screen: the answer in a sentence, and its comparisons as bars with seeds, on one scale."""

import math
from dataclasses import dataclass

import pandas as pd

from mcgrpo.report import wording
from mcgrpo.report.tables.comparisons import PairedDifference
from mcgrpo.report.tables.headline import Headline, headline

SCALES = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1)
"""Possible half widths of the axis."""
VERBS = {
    "better": "is better than",
    "worse": "is worse than",
    "equivalent": "is equivalent to",
    "inconclusive": "cannot be told from",
    wording.ONE_SEED: "was run with one seed against",
    "no interval": "has no interval against",
}


@dataclass(frozen=True)
class Bar:
    """One comparison as drawn, in percent of the width; None if there is nothing to draw."""

    row: PairedDifference
    left: float | None
    width: float | None
    dot: float | None
    seeds: tuple[float, ...]


@dataclass(frozen=True)
class Answer(Headline):
    """The answer of a study, with the most important comparisons in sentences (`lead`), and all as bars."""

    lead: str = ""
    problems: str = ""
    verdicts: str = ""
    bars: tuple[Bar, ...] = ()
    scale: float = SCALES[-1]

    @property
    def ends(self) -> tuple[str, str, str]:
        """Labels of the axis at its left end, middle and right end, in points."""
        digits = 1 if self.scale < 0.01 else 0
        return wording.points(-self.scale, digits), "0", wording.points(self.scale, digits)

    @property
    def band(self) -> tuple[float, float] | None:
        """The equivalence margin in the drawing, if there is one: left end and width in percent."""
        if self.margin is None:
            return None
        left, right = _position(-self.margin, self.scale), _position(self.margin, self.scale)
        return left, round(right - left, 2)


def answer(summary: pd.DataFrame, gains: pd.DataFrame) -> Answer:
    """The answer of `mcgrpo.report.tables.headline`, with its comparisons and controls as bars."""
    head = headline(summary, gains)
    rows = head.comparisons
    scale = _scale(rows)
    return Answer(
        **vars(head),
        lead=_lead([row for row in rows if not row.is_control]),
        problems=_problems(rows),
        verdicts=wording.about_verdicts(head.margin),
        bars=tuple(_bar(row, scale) for row in rows),
        scale=scale,
    )


def _problems(rows: tuple[PairedDifference, ...]) -> str:
    """The number of problems of each benchmark."""
    sizes = {row.place.split(" on ")[-1]: row.n for row in rows if row.n}
    return ", ".join(f"{wording.count(n, 'problem')} on {benchmark}" for benchmark, n in sizes.items())


def _lead(rows: list[PairedDifference]) -> str:
    """A sentence each for the first comparison that was run, and the first others that are better and worse."""
    run = [row for row in rows if not math.isnan(row.value)]
    sides = ([row for row in run[1:] if row.verdict == side] for side in ("better", "worse"))
    return " ".join(map(_sentence, [*run[:1], *(rows[0] for rows in sides if rows)]))


def _sentence(row: PairedDifference) -> str:
    told = f"{wording.count(row.seeds, 'seed')}, {wording.count(row.n or 0, 'problem')}"
    number = f"{wording.points(row.value)} points"
    number += "" if math.isnan(row.low) else f", 95% interval {wording.points(row.low)} to {wording.points(row.high)}"
    text = f"At G={row.num_generations}, {row.method} {VERBS[row.word]} {row.baseline} "
    text += f"({row.place}, {row.decoding}): {number} ({told})."
    if row.verdict == "inconclusive":
        text += f" A true difference of {wording.count_points(row.detectable)} could have been seen."
    if row.excludes is not None:
        told = "excludes" if row.excludes else "does not exclude"
        text += f" The interval {told} the paper's {wording.points(row.published, 2)}."
    return text


def _scale(rows: tuple[PairedDifference, ...]) -> float:
    """The smallest half width of the axis that shows every bar and seed."""
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high, *row.gains) if not math.isnan(end)]
    return min(scale for scale in SCALES if scale >= max(ends, default=0) or scale == SCALES[-1])


def _position(value: float, scale: float) -> float | None:
    """Position in percent from the left end of the drawing."""
    return None if math.isnan(value) else round(min(max(50 + 50 * value / scale, 0), 100), 2)


def _bar(row: PairedDifference, scale: float) -> Bar:
    left, right = _position(row.low, scale), _position(row.high, scale)
    width = None if left is None or right is None else round(right - left, 2)
    return Bar(row, left, width, _position(row.value, scale), tuple(_position(gain, scale) for gain in row.gains))
