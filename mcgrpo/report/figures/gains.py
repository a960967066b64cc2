"""Paired gains in accuracy against G: the mean with its interval, and every seed."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mcgrpo.analyse.frames import seed_gains
from mcgrpo.report import shown, wording
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


def draw(summary: pd.DataFrame, gains: pd.DataFrame, save: style.Save, decoding: str) -> None:
    """Gains over the mean-centred method at the same G: a row for each setting and benchmark, a column for each loss.

    A band is the equivalence margin; crosses are the gains that the paper prints.

    Args:
        summary: a row per `Cell`.
        gains: a row per `Gain`.
        save: is given the finished figure.
        decoding: "greedy" or "sampled".

    Raises:
        ValueError: if no method has such a gain.
    """
    cells = shown.gains(summary, decoding)
    cells = cells[cells.difference.notna()]
    losses = [loss for loss in style.LOSSES if loss in set(cells.method.map(_loss))]
    budgets = sorted(cells.num_generations.unique())
    blocks = blocks_of(cells)
    with style.panels(len(blocks), len(losses), 1.75) as (figure, grid):
        for place, line in zip(blocks, grid, strict=True):
            own = block(cells, *place)
            for loss, axes in zip(losses, line, strict=True):
                _panel(axes, own[own.method.map(_loss) == loss], gains, budgets)
                _ground(axes, own.equivalence_margin.max())
            line[0].yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            line[0].set_ylabel("\n".join(place))
        for axes, loss in zip(grid[0], losses, strict=True):
            axes.set_title(f"over {style.LOSSES[loss]}")
        for axes in grid[:-1].flat:
            axes.tick_params(labelbottom=False)
        style.label(
            figure, ("G, rollouts in the update", _bars(cells)), f"gain (points), {measure_of(cells, decoding)}"
        )
        style.legend(figure, 3)
        save(figure)


def _loss(method: str) -> str:
    return METHODS[method].loss_type


def _bars(cells: pd.DataFrame) -> str:
    """What the bars are over: a difference has one shared seed where its cells have several."""
    drawn = cells[cells.difference_low.notna()]
    return style.bars(drawn.over.where(drawn.difference_seeds > 1, "problems"))


def _ground(axes: Axes, margin: float) -> None:
    """The line of no gain, and the band of gains that count as none."""
    axes.axhline(0, color="0.25", linewidth=0.9, zorder=1)
    if pd.notna(margin):
        name = f"equivalent (±{wording.count_points(margin)})"
        axes.axhspan(-100 * margin, 100 * margin, color="0.88", linewidth=0, zorder=0, label=name)


def _panel(axes: Axes, rows: pd.DataFrame, gains: pd.DataFrame, budgets: list[int]) -> None:
    methods = [method for method in METHODS if method in set(rows.method)]
    for number, method in enumerate(methods):
        own, look = rows[rows.method == method], style.look_of(method)
        offset = APART * (number - (len(methods) - 1) / 2)
        places = np.array([budgets.index(g) for g in own.num_generations], dtype=float) + offset
        across = style.errors(own, "difference", "difference_low", "difference_high")
        drawn = style.OUTLINE | look | {"linestyle": "none", "capsize": 2, "elinewidth": 0.9}
        axes.errorbar(places, 100 * own.difference, yerr=across, **drawn, zorder=3)
        for place, cell in zip(places, own.itertuples(), strict=True):
            each = 100 * np.array(seed_gains(gains, cell))
            axes.plot(np.full(len(each), place + BESIDE), each, **SEEDS, color=look["color"], label="single seeds")
        printed = own.published_difference.notna().to_numpy()
        if printed.any():
            axes.plot(places[printed] - BESIDE, 100 * own.published_difference[printed], **PAPER)
    style.categories(axes, budgets)
