"""Paired gains in accuracy against G: the mean with its interval, and every seed."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mcgrpo.report import wording
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.study.methods import METHODS

APART, BESIDE = 0.3, 0.1
"""Between the methods of one G, and from a mean to its seeds, of the 1 between two G."""
SEEDS = {"linestyle": "none", "marker": "o", "markersize": 2.6, "markeredgewidth": 0, "alpha": 0.7, "zorder": 2}
PAPER = {
    "linestyle": "none",
    "marker": "x",
    "markersize": 4.5,
    "markeredgewidth": 1.1,
    "color": "black",
    "label": "the paper's gain",
}


def draw(cells: pd.DataFrame) -> Figure:
    """Gains over the mean-centred method at the same G: a row for each setting and benchmark, a column for each loss.

    A band is the equivalence margin; crosses are the gains that the paper prints.
    """
    cells = cells[cells.difference.notna()]
    losses, blocks = style.losses_of(cells.method), blocks_of(cells)
    budgets = sorted(cells.num_generations.unique())
    titles = [f"over {style.LOSSES[loss]}" for loss in losses]
    figure, grid = style.named_panels(["\n".join(each) for each in blocks], titles, 1.75)
    for place, line in zip(blocks, grid, strict=True):
        own = block(cells, *place)
        for loss, axes in zip(losses, line, strict=True):
            rows = own[own.method.map(lambda m, loss=loss: METHODS[m].loss_type == loss)]
            style.categories(axes, budgets)
            if len(rows):
                _panel(axes, rows, budgets)
                _ground(axes, own.equivalence_margin.max())
        line[0].yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    style.leave_empty(grid)
    x = (style.ROLLOUTS, style.bars_of_pairs(cells, "difference"))
    style.label(figure, 3, x, f"gain (points), {measure_of(cells)}")
    return figure


def _ground(axes: Axes, margin: float) -> None:
    """The line of no gain, and the band of gains that count as none."""
    axes.axhline(0, color="0.25", linewidth=0.9, zorder=1)
    if pd.notna(margin):
        name = f"equivalent (±{wording.count_points(margin)})"
        axes.axhspan(-100 * margin, 100 * margin, color="0.88", linewidth=0, zorder=0, label=name)


def _panel(axes: Axes, rows: pd.DataFrame, budgets: list[int]) -> None:
    methods = [method for method in METHODS if method in set(rows.method)]
    for number, method in enumerate(methods):
        own, look = rows[rows.method == method], style.look_of(method)
        x = own.num_generations.map(budgets.index) + APART * (number - (len(methods) - 1) / 2)
        means = style.BARS | look | {"linestyle": "none", "zorder": 3}
        axes.errorbar(x, 100 * own.difference, yerr=style.errors(own, "difference"), **means)
        for at, seeds in zip(x, own.seed_gains, strict=True):
            axes.plot(
                [at + BESIDE] * len(seeds), 100 * np.array(seeds), **SEEDS, color=look["color"], label="single seeds"
            )
        printed = own.published_difference.notna()
        if printed.any():
            axes.plot(x[printed] - BESIDE, 100 * own.published_difference[printed], **PAPER)
