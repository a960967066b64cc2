"""Shared parts of figures: colours, a grid of panels, lines with intervals, legends, reproducible files.

Colours are seaborn's "colorblind"; a marker or dash pattern repeats what a colour shows.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mcgrpo.files import atomic
from mcgrpo.study.methods import METHODS, is_median
from mcgrpo.study.primary import CONTROL

WIDE, TALL = 6.75, 9.0
"""Inches: the width of a page's text, and its height."""
PALETTE = sns.color_palette("colorblind")
LOSSES = {name: METHODS[method.baseline or name].label for name, method in METHODS.items()}
"""The name of each method's loss: that of the mean-centred method."""
LOSS_COLOURS = dict(zip(dict.fromkeys(LOSSES.values()), (PALETTE[2], PALETTE[4], "0.2"), strict=True))
CENTRES = {
    False: {"label": "mean-centred", "color": PALETTE[0], "marker": "o", "markersize": 4.5, "linestyle": "--"},
    True: {"label": "median-centred", "color": PALETTE[1], "marker": "*", "markersize": 8, "linestyle": "-"},
}
LOOKS = {name: CENTRES[is_median(name)] for name in METHODS} | {
    CONTROL: {"label": METHODS[CONTROL].label, "color": "0.35", "marker": "s", "markersize": 4, "linestyle": ":"}
}
"""The look of a method among those of its loss."""
BARS = {"markeredgecolor": "white", "markeredgewidth": 0.4, "capsize": 2, "elinewidth": 0.9, "linewidth": 1.2}
DODGE = {False: -0.09, True: 0.09}
"""Offset of the lines along the x axis, by whether a method centres on the median."""
ROLLOUTS = "G, rollouts in the update"
STYLE = {
    **sns.axes_style("whitegrid"),
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "grid.linewidth": 0.5,
    "pdf.fonttype": 42,
}
"""The settings with which figures are drawn and saved."""


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of trained methods sorted by setting, benchmark (if any) and method; the first two name their `row`."""
    places = [name for name in ("setting", "benchmark") if name in rows]
    order = rows.method.map(list(METHODS).index)
    rows = rows.assign(order=order, row=rows[places].agg("\n".join, axis=1))
    return rows.sort_values([*places, "order"], kind="stable")


def shown(rows: pd.DataFrame, what: str) -> pd.DataFrame:
    """The rows to draw.

    Raises:
        ValueError: names what is missing if there are none.
    """
    if rows.empty:
        raise ValueError(f"nothing to show: no {what}")
    return rows


def draw(
    data: pd.DataFrame,
    panel: Callable[[Axes, pd.DataFrame], None],
    height: float,
    below: Sequence[str],
    side: str = "",
    **shared,
) -> Figure:
    """A panel for each `row` and `column` of the data (its columns of these names) that occur together; one legend.

    Args:
        data: the rows to draw; rows and columns of panels are in the order in which their names first occur.
        panel: is given axes and their rows, to draw them.
        height: of a row of panels, in inches.
        below: the lines of the label of x; empty ones are left out.
        side: the label of y.
        shared: passed to `Figure.subplots`; by default, panels of a row share y.
    """
    rows, columns = (list(dict.fromkeys(data[name])) for name in ("row", "column"))
    size = (WIDE, max(min(height * len(rows) + 1, TALL), 1.2 * len(rows) + 1))
    options = {"sharey": "row", "squeeze": False} | shared
    figure = Figure(size, layout="constrained")
    grid = figure.subplots(len(rows), len(columns), **options)
    titled: set[str] = set()
    for name, line in zip(rows, grid, strict=True):
        named = False
        for title, axes in zip(columns, line, strict=True):
            own = data[(data.row == name) & (data.column == title)]
            if own.empty:
                axes.remove()
                continue
            panel(axes, own)
            axes.tick_params(labelleft=not named or options["sharey"] != "row", labelbottom=True)
            axes.set_ylabel("" if named else name)
            axes.set_title("" if title in titled else title)
            titled, named = titled | {title}, True
    _label(figure, "\n".join(filter(None, below)), side)
    return figure


def _label(figure: Figure, below: str, side: str) -> None:
    """Labels for all panels, and the entries of their legends in one above them."""
    figure.supxlabel(below, fontsize=STYLE["axes.labelsize"])
    if side:
        figure.supylabel(side, fontsize=STYLE["axes.labelsize"])
    entries = {}
    for axes in figure.axes:
        entries |= {text: handle for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=4, frameon=False)


def line(axes: Axes, x: Sequence[float], rows: pd.DataFrame, field: str = "mean", **look) -> None:
    """A `field` of `Cell` in percent against x, with its interval if it has one; a gap where it is missing."""
    axes.errorbar(x, 100 * rows[field], yerr=errors(rows, field), **BARS | look)


def errors(rows: pd.DataFrame, field: str) -> np.ndarray:
    """Percent below and above a `field` of `Cell`, 2 x points; NaN (not drawn) if it has no interval."""
    low, high = (rows[end if field == "mean" else f"{field}_{end}"] for end in ("low", "high"))
    return 100 * np.clip(np.array([rows[field] - low, high - rows[field]], dtype=float), 0, None)


def categories(axes: Axes, names: Sequence) -> None:
    """One tick of x for each name, at 0, 1, 2, ..., and several of y."""
    axes.set_xticks(range(len(names)), [str(name) for name in names])
    axes.set_xlim(-0.4, len(names) - 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def bars(cells: pd.DataFrame, field: str = "mean") -> str:
    """The meaning of the error bars of a `field` of `Cell`, for an axis label; "" without any.

    A difference may have one shared seed although its cells have several.
    """
    drawn = cells[cells["low" if field == "mean" else f"{field}_low"].notna()]
    over = drawn.over if field == "mean" else drawn.over.where(drawn[f"{field}_seeds"] > 1, "problems")
    kinds = sorted(over.dropna().unique(), key=len, reverse=True)
    return f"bars: 95% interval over {', or '.join(kinds)}" if kinds else ""


def message(text: str) -> Figure:
    """A figure with one sentence: why there is nothing to show."""
    figure = Figure((WIDE, 1.5))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, wrap=True, ha="center", va="center")
    return figure


def save(stem: Path, figure: Figure) -> None:
    """Write STEM.pdf and STEM.png without a date, so that the same figure gives the same bytes."""
    for suffix, metadata in ((".pdf", {"CreationDate": None}), (".png", {})):
        # Whole, before the disk is written: on a full one matplotlib ends in an error of its own
        content = io.BytesIO()
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=metadata)
        with atomic(stem.with_name(stem.name + suffix)) as temporary:
            temporary.write_bytes(content.getvalue())
        figure.set_layout_engine("none")  # the second file has the layout of the first
