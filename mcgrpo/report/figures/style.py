"""Shared parts of figures: sizes, colours, grids of panels, intervals, legends, reproducible files.

Colours are seaborn's "colorblind"; a marker, dash pattern or hatch repeats what a colour shows.
"""

from collections.abc import Iterator, Sequence
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

from mcgrpo.files import atomic
from mcgrpo.report import wording
from mcgrpo.study.methods import METHODS, is_median

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
BARS = {"markeredgecolor": "white", "markeredgewidth": 0.4, "capsize": 2, "elinewidth": 0.9}
MIDDLE = {"ha": "center", "va": "center"}
ROLLOUTS = "G, rollouts in the update"
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


def losses_of(methods: pd.Series) -> list[str]:
    """The loss types of the methods, in the usual order."""
    used = {METHODS[method].loss_type for method in methods}
    return [loss for loss in LOSSES if loss in used]


@contextmanager
def styled() -> Iterator[None]:
    """The settings with which figures are drawn and saved; at the end, all figures are closed."""
    with mpl.rc_context({**sns.axes_style("whitegrid"), **STYLE}):
        try:
            yield
        finally:
            plt.close("all")


def panels(rows: int, columns: int, height: float, width: float | None = None, **shared) -> tuple[Figure, np.ndarray]:
    """A figure of rows x columns `Axes`, each `height` inches high or less to fit a page.

    Its width is one text column for one column of panels, else two. `shared` is passed to `plt.subplots`; by default,
    panels of a row share y.
    """
    floor = min(height, LEAST) * rows + MARGIN
    size = (width or (NARROW if columns == 1 else WIDE), max(min(height * rows + MARGIN, TALL), floor))
    shared = {"sharey": "row"} | shared
    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **shared)


def named_panels(rows: Sequence[str], columns: Sequence[str], height: float, **options) -> tuple[Figure, np.ndarray]:
    """`panels` with names left of the rows and above the columns; the last row has the tick labels of x."""
    figure, grid = panels(len(rows), len(columns), height, **options)
    for axes, name in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(name)
    for axes, name in zip(grid[0], columns, strict=True):
        axes.set_title(name)
    for axes in grid[:-1].flat:
        axes.tick_params(labelbottom=False)
    return figure, grid


def errors(rows: pd.DataFrame, field: str = "mean") -> np.ndarray:
    """Percent below and above a `field` of `Cell`, 2 x points; NaN (not drawn) if it has no interval."""
    low, high = (rows[end if field == "mean" else f"{field}_{end}"] for end in ("low", "high"))
    return 100 * np.clip(np.array([rows[field] - low, high - rows[field]], dtype=float), 0, None)


def draw_means(axes: Axes, x: np.ndarray, rows: pd.DataFrame, **look) -> None:
    """Draw means in percent with intervals, if there are any."""
    if rows["mean"].notna().any():
        axes.errorbar(x, 100 * rows["mean"], yerr=errors(rows), **{**BARS, "linewidth": 1.2} | look)


def draw_line(axes: Axes, rows: pd.DataFrame, x: str, values: Sequence, offset: float, **look) -> None:
    """Draw means against the column `x`, at 0, 1, 2, ... for these values; a row without a mean leaves a gap."""
    rows = rows[rows[x].isin(values)].sort_values(x)
    draw_means(axes, np.array([list(values).index(value) for value in rows[x]], dtype=float) + offset, rows, **look)


def leave_empty(grid: np.ndarray) -> None:
    """Show nothing but names in panels without data.

    The lowest other one of a column labels the ticks of x, the first of a row those of y.
    """
    drawn = np.vectorize(Axes.has_data, otypes=[bool])(grid)
    for axes in grid[~drawn]:
        axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
        axes.grid(visible=False, which="both")
        axes.spines[:].set_visible(False)
    for column in range(grid.shape[1]):
        grid[np.flatnonzero(drawn[:, column])[-1], column].tick_params(labelbottom=True)
    for row in np.flatnonzero(drawn.any(axis=1)):
        grid[row, np.flatnonzero(drawn[row])[0]].tick_params(labelleft=True)


def accuracy_axis(axes: Axes, untrained: pd.DataFrame) -> None:
    """Ticks of accuracy, several per panel, and the untrained model: a dotted line, or a note if it is far away.

    Call it after the trained models of all panels of a row are drawn: a distant line would hide their differences of a
    point. There is a faint line at each point if these fit.
    """
    low, high = axes.get_ylim()
    reach = REACH * (high - low)
    for value in 100 * untrained["mean"].dropna():
        if low - reach <= value <= high + reach:
            axes.axhline(value, color=GREY, linestyle=":", linewidth=1.2, label="untrained")
        else:
            _note_untrained(axes, value, value < low)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    low, high = axes.get_ylim()
    if high - low <= FINE:
        axes.yaxis.set_minor_locator(MultipleLocator(1))
        axes.grid(visible=True, which="minor", axis="y", color="0.92", linewidth=0.4)


def _note_untrained(axes: Axes, value: float, below: bool) -> None:
    axes.margins(y=0.12)
    arrow, height, va = ("\N{DOWNWARDS ARROW}", 0.02, "bottom") if below else ("\N{UPWARDS ARROW}", 0.98, "top")
    text = f"{arrow} untrained {wording.percent(value / 100)}"
    axes.text(0.985, height, text, transform=axes.transAxes, ha="right", va=va, color=GREY, fontsize=6.5)


def whole_steps(axes: Axes) -> None:
    """Ticks of x at whole steps, however few there are."""
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


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


def bars_of_pairs(cells: pd.DataFrame, field: str) -> str:
    """`bars` of a paired `field` of `Cell`: it may have one shared seed although its cells have several."""
    drawn = cells[cells[f"{field}_low"].notna()]
    return bars(drawn.over.where(drawn[f"{field}_seeds"] > 1, "problems"))


def label(figure: Figure, columns: int, x: Sequence[str] = (), y: str = "") -> None:
    """The labels of all panels, and one legend above them in this number of columns, the untrained model last.

    The parts of `x` are lines, without empty ones.
    """
    size = STYLE["axes.labelsize"]
    if text := "\n".join(filter(None, x)):
        figure.supxlabel(text, fontsize=size)
    if y:
        figure.supylabel(y, fontsize=size)
    entries = {}
    for axes in figure.axes:
        entries |= {text: handle for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    entries = {text: entries[text] for text in sorted(entries, key="untrained".__eq__)}
    columns = min(len(entries), columns)
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=columns, frameon=False)


def message(text: str) -> Figure:
    """A figure with one sentence: why there is nothing to show."""
    figure, grid = panels(1, 1, 0.6, width=WIDE)
    grid[0, 0].set_axis_off()
    grid[0, 0].text(0.5, 0.5, text, wrap=True, **MIDDLE)
    return figure


def save(stem: Path, figure: Figure) -> None:
    """Write STEM.pdf and STEM.png without a date, so that the same figure gives the same bytes."""
    for suffix, metadata in ((".pdf", {"CreationDate": None}), (".png", {})):
        with atomic(stem.with_name(stem.name + suffix)) as temporary:
            figure.savefig(temporary, format=suffix[1:], dpi=300, metadata=metadata)
        figure.set_layout_engine("none")  # the second file has the layout of the first
