"""The first screen: the answer in a sentence, and each comparison behind it as a bar on one scale."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from mcgrpo.frames import DECODINGS, accuracies
from mcgrpo.methods import METHODS
from mcgrpo.report import wording
from mcgrpo.report.accuracy import intervals, problems
from mcgrpo.report.headline import VERBS, at_least_g, control, headline
from mcgrpo.stats import verdict

FIRST_LINE = re.compile(r"\*\*(.+?)\*\* ([^.:]+)[.:] (.+)")
"""The question, the answer in a word or two, and the counts."""
SCALES = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1)
"""Half widths that an axis may have."""


@dataclass(frozen=True)
class Comparison:
    """One paired difference of accuracy: fractions, NaN where there is no number; `place` as `setting on benchmark`.

    `zero`, `left`, `width` and `dot` are percent of the drawing's width, None where there is nothing to draw.
    """

    place: str
    name: str
    decoding: str
    is_control: bool
    value: float
    low: float
    high: float
    seeds: int
    planned: int
    n: int | None
    left: float | None = None
    width: float | None = None
    dot: float | None = None

    @property
    def verdict(self) -> str:
        """above, below, indistinguishable, unknown (no interval) or missing."""
        return wording.MISSING if math.isnan(self.value) else verdict(self.low, self.high)

    @property
    def text(self) -> str:
        """The difference with its interval, in points."""
        return wording.signed(self.value, self.low, self.high)


@dataclass(frozen=True)
class Answer:
    """The question and its answer; `told` counts the comparisons, `lead` says what those that matter most found."""

    question: str
    word: str
    told: str
    lead: str
    over: str
    problems: str
    comparisons: tuple[Comparison, ...]
    scale: float

    @property
    def ends(self) -> tuple[str, str, str]:
        """What the axis says at its left end, middle and right end, in points."""
        digits = 1 if self.scale < 0.01 else 0
        return wording.points(-self.scale, digits), "0", wording.points(self.scale, digits)


def answer(summary: pd.DataFrame) -> Answer:
    """What `mcgrpo.report.headline` says of the summary, with its comparisons (and their controls) to be drawn."""
    first = headline(summary).splitlines()[0]
    found = FIRST_LINE.fullmatch(first)
    question, word, told = found.groups() if found else ("Does the median help here?", "Not asked", first)
    cells = accuracies(summary, "in")
    medians = at_least_g(cells)
    medians = medians[medians.baseline.notna()]
    rows = list(_comparisons(cells, medians))
    scale = _scale(rows)
    shown = list(medians.itertuples())
    return Answer(
        question,
        f"{word}.",
        told[0].upper() + told[1:],
        _lead([row for row in rows if not row.is_control]),
        intervals(shown).removeprefix(", with its "),
        problems(shown) if shown else "",
        tuple(_drawn(row, scale) for row in rows),
        scale,
    )


def _comparisons(cells: pd.DataFrame, medians: pd.DataFrame):
    """In the headline's order: sampled before greedy, each median-centred method before its control."""
    for _, rows in medians.groupby(["setting", "benchmark"], sort=False):
        order = rows.method.map(list(METHODS).index) * len(DECODINGS) - rows.decoding.map(DECODINGS.index)
        for _, cell in rows.loc[order.sort_values().index].iterrows():
            yield _comparison(cell, is_control=False)
            beside = control(cells, cell)
            if not beside.empty:
                yield _comparison(beside.iloc[0], is_control=True)


def _comparison(cell: Any, is_control: bool) -> Comparison:
    return Comparison(
        place=f"{cell.setting} on {cell.benchmark}",
        name=f"{wording.label(cell.method)} − {wording.label(cell.baseline)}, G={cell.num_generations}",
        decoding=f"sampled, {cell.measure}" if cell.decoding == "sampled" else "greedy",
        is_control=is_control,
        value=float(cell.difference),
        low=float(cell.difference_low),
        high=float(cell.difference_high),
        seeds=0 if pd.isna(cell.difference_seeds) else int(cell.difference_seeds),
        planned=int(cell.planned),
        n=None if pd.isna(cell.n) else int(cell.n),
    )


def _lead(rows: list[Comparison]) -> str:
    """The first comparison that has been run, and the first other that is surely above and below, a sentence each."""
    run = [row for row in rows if not math.isnan(row.value)]
    sides = ([row for row in run[1:] if row.verdict == side] for side in ("above", "below"))
    return " ".join(map(_sentence, [*run[:1], *(rows[0] for rows in sides if rows)]))


def _sentence(row: Comparison) -> str:
    names, budget = row.name.split(", ")
    method, baseline = names.split(" − ")
    told = f"{wording.count(row.seeds, 'seed')}, {wording.count(row.n or 0, 'problem')}"
    number = f"{wording.points(row.value)} points"
    number += "" if math.isnan(row.low) else f", 95% interval {wording.points(row.low)} to {wording.points(row.high)}"
    return f"At {budget}, {method} {VERBS[row.verdict]} {baseline} ({row.place}, {row.decoding}): {number} ({told})."


def _scale(rows: list[Comparison]) -> float:
    """Half the width of the axis: the least that holds every bar."""
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if not math.isnan(end)]
    return min(scale for scale in SCALES if scale >= max(ends, default=0) or scale == SCALES[-1])


def _drawn(row: Comparison, scale: float) -> Comparison:
    def place(value: float) -> float | None:
        return None if math.isnan(value) else round(50 + 50 * value / scale, 2)

    left, right = place(row.low), place(row.high)
    width = None if left is None or right is None else round(right - left, 2)
    return replace(row, left=left, width=width, dot=place(row.value))
