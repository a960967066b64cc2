"""The change by each variant: the paired difference from the same method and G under the default."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mcgrpo.analyse.frames import DECODINGS
from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block
from mcgrpo.study.methods import METHODS, method_order

LINE = 0.17
"""Inches of a row."""


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """Dots with intervals, in points: a row of panels for each variant, setting and benchmark, a column per decoding.

    Variants with a figure of their own (composite, injected flips) are left out.

    Args:
        summary: a row per `Cell`.
        save: is given the finished figure.

    Raises:
        ValueError: if no other variant has a change.
    """
    cells = shown.variants(summary)
    cells = cells[cells.change.notna()]
    decodings = [decoding for decoding in DECODINGS if (cells.decoding == decoding).any()]
    keys = ["variant", "setting", "benchmark"]
    groups = [(key, _entries(rows)) for key, rows in cells.groupby(keys)]
    counts = [len(entries) for _, entries in groups]
    height = LINE * sum(counts) / len(counts) + 0.35
    ratios = {"gridspec_kw": {"height_ratios": [count + 0.5 for count in counts]}}
    with style.panels(len(groups), len(decodings), height, width=style.WIDE, sharex=True, **ratios) as (figure, grid):
        for ((variant, *place), entries), line in zip(groups, grid, strict=True):
            own = block(cells[cells.variant == variant], *place)
            for decoding, axes in zip(decodings, line, strict=True):
                _dots(axes, own[own.decoding == decoding], entries)
            line[0].set_title(f"{variant} ({', '.join(place)})", loc="left", fontweight="bold")
            line[0].set_yticks(range(len(entries)), [f"{METHODS[m].label}, G = {g}" for m, g in entries])
            line[0].set_ylim(len(entries) - 0.4, -0.6)
        for axes, decoding in zip(grid[-1], decodings, strict=True):
            axes.set_xlabel(f"change of {decoding} accuracy (points)")
        style.label(figure, (f"to the same method and G under the default; {_bars(cells)}".rstrip("; "),))
        style.legend(figure, 3)
        save(figure)


def _entries(rows: pd.DataFrame) -> list[tuple[str, int]]:
    """Each method and G of the rows, in the usual order."""
    return sorted(set(zip(rows.method, rows.num_generations, strict=True)), key=lambda e: (method_order(e[0]), e[1]))


def _bars(cells: pd.DataFrame) -> str:
    """What the bars are over: a change has one shared seed where its cells have several."""
    drawn = cells[cells.change_low.notna()]
    return style.bars(drawn.over.where(drawn.change_seeds > 1, "problems"))


def _dots(axes: Axes, rows: pd.DataFrame, entries: list[tuple[str, int]]) -> None:
    axes.axvline(0, color="0.25", linewidth=0.9)
    axes.grid(visible=False, axis="y")
    heights = [entries.index(entry) for entry in zip(rows.method, rows.num_generations, strict=True)]
    for look in (*style.CENTRES.values(), style.CONTROL):
        own = (rows.method.map(style.look_of).map(lambda each, look=look: each is look)).to_numpy(bool)
        chosen = rows[own]
        if len(chosen):
            across = style.errors(chosen, "change", "change_low", "change_high")
            drawn = style.OUTLINE | look | {"linestyle": "none", "capsize": 2, "elinewidth": 0.9}
            axes.errorbar(100 * chosen.change, np.array(heights)[own], xerr=across, **drawn)
