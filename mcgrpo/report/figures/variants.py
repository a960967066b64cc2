"""The change by each variant: the paired difference from the same method and G under the default."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.frames import DECODINGS
from mcgrpo.report.figures import style
from mcgrpo.study.methods import METHODS, method_order

LINE = 0.17
"""Inches of a row."""


def draw(cells: pd.DataFrame) -> Figure:
    """Dots with intervals: a row of panels for each variant, setting and benchmark, a column per decoding."""
    cells = cells[cells.change.notna()]
    decodings = [decoding for decoding in DECODINGS if (cells.decoding == decoding).any()]
    groups = [(*group, _entries(group[1])) for group in cells.groupby(["variant", "setting", "benchmark"])]
    counts = [len(entries) for *_, entries in groups]
    height = LINE * sum(counts) / len(counts) + 0.35
    ratios = {"gridspec_kw": {"height_ratios": [count + 0.5 for count in counts]}}
    figure, grid = style.panels(len(groups), len(decodings), height, width=style.WIDE, sharex=True, **ratios)
    for ((variant, *place), own, entries), line in zip(groups, grid, strict=True):
        for decoding, axes in zip(decodings, line, strict=True):
            _dots(axes, own[own.decoding == decoding], entries)
        line[0].set_title(f"{variant} ({', '.join(place)})", loc="left", fontweight="bold")
        line[0].set_yticks(range(len(entries)), [f"{METHODS[m].label}, G = {g}" for m, g in entries])
        line[0].set_ylim(len(entries) - 0.4, -0.6)
    for axes, decoding in zip(grid[-1], decodings, strict=True):
        axes.set_xlabel(f"change of {decoding} accuracy (points)")
    note = f"to the same method and G under the default; {style.bars_of_pairs(cells, 'change')}"
    style.label(figure, 3, [note.rstrip("; ")])
    return figure


def _entries(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """Each method and G of the rows, in the usual order."""
    return sorted(set(zip(rows.method, rows.num_generations, strict=True)), key=lambda e: (method_order(e[0]), e[1]))


def _dots(axes: Axes, rows: pd.DataFrame, entries: list[tuple[str, int]]) -> None:
    axes.axvline(0, color="0.25", linewidth=0.9)
    axes.grid(visible=False, axis="y")
    for look in (*style.CENTRES.values(), style.CONTROL):
        own = rows[[style.look_of(method) is look for method in rows.method]]
        if len(own):
            heights = [entries.index(entry) for entry in zip(own.method, own.num_generations, strict=True)]
            dots = style.BARS | look | {"linestyle": "none"}
            axes.errorbar(100 * own.change, heights, xerr=style.errors(own, "change"), **dots)
