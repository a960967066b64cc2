"""Shared parts of figures: sizes, colours, grids of panels, intervals, legends, reproducible files.

Colours are seaborn's "colorblind"; a marker, dash pattern or hatch repeats what a colour shows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from mcgrpo.analyse.frames import is_median
from mcgrpo.files import atomic
from mcgrpo.report import wording
from mcgrpo.study.methods import METHODS

Save = Callable[[Figure], None]
"""A function that receives the finished figure before it is closed."""

NARROW, WIDE, TALL = 3.25, 6.75, 9.0
"""Inches: one column of a two-column page, both, and the height of its text."""
MARGIN, LEAST = 0.9, 1.3
"""Inches: legend and labels together, and the names at the side of a panel."""

PALETTE = sns.color_palette("colorblind")
GREY = "0.35"
LOSSES = {method.loss_type: method.label for method in METHODS.values() if method.baseline is None}
LOSS_COLOURS = dict(zip(LOSSES, (PALETTE[2], PALETTE[4], "0.2"), strict=True))
CENTRES = {
    False: {"label": "mean-centred", "color": PALETTE[0], "marker": "o", "markersize": 4.5, "linestyle": "--"},
    True: {"label": "median-centred", "color": PALETTE[1], "marker": "*", "markersize": 8, "linestyle": "-"},
}
CONTROL = {"label": METHODS["grpo-plus1"].label, "color": GREY, "marker": "s", "markersize": 4, "linestyle": ":"}
OUTLINE = {"markeredgecolor": "white", "markeredgewidth": 0.4}
MIDDLE = {"ha": "center", "va": "center"}
REACH = 0.35
"""How far an axis extends for the untrained model, as a share of the range of the trained ones."""
FINE = 30
"""Maximum range of an axis, in points, with a grid line at each point."""
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.titlepad": 3,
    "legend.fontsize": 7.5,
    "legend.columnspacing": 1.2,
    "legend.handlelength": 2.2,
    "legend.handletextpad": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.pad": 2,
    "ytick.major.pad": 2,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
}


def look_of(method: str) -> dict:
    """The look of a method among those of its loss: by its centre; the control has its own."""
    control = METHODS[method].baseline is not None and not is_median(method)
    return CONTROL if control else CENTRES[is_median(method)]


@contextmanager
def panels(rows: int, columns: int, height: float, width: float | None = None, **shared) -> Iterator[tuple]:
    """A figure of rows x columns `Axes`, each `height` inches high or less to fit a page; closed at the end.

    Its width is one text column for one column of panels, else two. `shared` is passed to `plt.subplots`; by default,
    panels of a row share y.
    """
    with mpl.rc_context({**sns.axes_style("whitegrid"), **STYLE}):
        width = width or (NARROW if columns == 1 else WIDE)
        floor = min(height, LEAST) * rows + MARGIN
        size = (width, max(min(height * rows + MARGIN, TALL), floor))
        shared = {"sharey": "row"} | shared
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **shared)
        try:
            yield figure, axes
        finally:
            plt.close(figure)


@contextmanager
def flow(count: int, height: float, columns: int = 3, **shared) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of `count` panels in reading order, at most `columns` in a row."""
    columns = min(count, columns)
    with panels(-(-count // columns), columns, height, **shared) as (figure, grid):
        for axes in grid.flat[count:]:
            axes.remove()
        yield figure, list(grid.flat[:count])


def errors(rows: pd.DataFrame, mean: str = "mean", low: str = "low", high: str = "high") -> np.ndarray:
    """Percent below and above the mean, 2 x points; NaN (not drawn) if there is no interval."""
    both = np.array([rows[mean] - rows[low], rows[high] - rows[mean]], dtype=float)
    return 100 * np.clip(both, 0, None)


def draw_line(axes: Axes, places: np.ndarray, rows: pd.DataFrame, **look) -> None:
    """Draw means in percent with intervals at `places`; missing ones leave a gap."""
    if rows["mean"].notna().any():
        look = {**OUTLINE, "linewidth": 1.2, "capsize": 2, "elinewidth": 0.9} | look
        axes.errorbar(places, 100 * rows["mean"], yerr=errors(rows), **look)


def draw_untrained(axes: Axes, rows: pd.DataFrame, color=GREY) -> None:
    """Draw the accuracy of the untrained model, if it was evaluated: a dotted line, or a note if it is far away.

    Call it after the trained models of all panels of a row are drawn: a distant line would hide their differences of a
    point.
    """
    low, high = axes.get_ylim()
    reach = REACH * (high - low)
    for value in 100 * rows["mean"].dropna():
        if low - reach <= value <= high + reach:
            axes.axhline(value, color=color, linestyle=":", linewidth=1.2, label="untrained")
        else:
            _note_untrained(axes, value, value < low, color)


def _note_untrained(axes: Axes, value: float, below: bool, color) -> None:
    axes.margins(y=0.12)
    arrow, height, va = ("\N{DOWNWARDS ARROW}", 0.02, "bottom") if below else ("\N{UPWARDS ARROW}", 0.98, "top")
    text = f"{arrow} untrained {wording.percent(value / 100)}"
    axes.text(0.985, height, text, transform=axes.transAxes, ha="right", va=va, color=color, fontsize=6.5)


def percent_axis(axes: Axes) -> None:
    """Ticks on the y axis: several per panel, and a faint line at each point if these fit."""
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    low, high = axes.get_ylim()
    if high - low <= FINE:
        axes.yaxis.set_minor_locator(MultipleLocator(1))
        axes.grid(visible=True, which="minor", axis="y", color="0.92", linewidth=0.4)


def categories(axes: Axes, names: Sequence) -> None:
    """One tick for each name, at 0, 1, 2, ..."""
    axes.set_xticks(range(len(names)), [str(name) for name in names])
    axes.set_xlim(-0.4, len(names) - 0.6)


def bars(over: pd.Series) -> str:
    """The meaning of the error bars, for an axis label, from `Cell.over`; "" without any."""
    kinds = sorted(over.dropna().unique(), key=len, reverse=True)
    if not kinds:
        return ""
    single = f" (over {kinds[1]} at one seed)" if kinds == ["seeds and problems", "problems"] else ""
    return f"bars: 95% interval over {kinds[0] if single else ' or '.join(kinds)}{single}"


def legend(figure: Figure, columns: int, skip: tuple[str, ...] = ()) -> None:
    """One legend for all panels, above them; the untrained model last."""
    entries = {}
    for axes in figure.axes:
        entries |= {text: handle for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    entries = {text: entries[text] for text in sorted(entries, key="untrained".__eq__) if text not in skip}
    columns = min(len(entries), columns)
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=columns, frameon=False)


def label(figure: Figure, x: Sequence[str] = (), y: str = "") -> None:
    """The labels of all panels; the parts of `x` are lines, without empty ones."""
    size = STYLE["axes.labelsize"]
    if text := "\n".join(part for part in x if part):
        figure.supxlabel(text, fontsize=size)
    if y:
        figure.supylabel(y, fontsize=size)


def say(text: str, save: Save) -> None:
    """A figure with one sentence: why there is nothing to show."""
    with panels(1, 1, 0.6, width=WIDE) as (figure, grid):
        grid[0, 0].set_axis_off()
        grid[0, 0].text(0.5, 0.5, text, wrap=True, **MIDDLE)
        save(figure)


def save(stem: Path, figure: Figure) -> None:
    """Write STEM.pdf and STEM.png without a date, so that the same figure gives the same bytes."""
    for suffix, metadata in ((".pdf", {"CreationDate": None}), (".png", {})):
        with atomic(stem.with_name(stem.name + suffix)) as temporary:
            figure.savefig(temporary, format=suffix[1:], dpi=300, metadata=metadata)
