"""Accuracy against G: a row of panels for each setting and benchmark, a column for each loss (15 in the paper)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mcgrpo.analyse.frames import is_median
from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.study.methods import METHODS, UNTRAINED

DODGE = 0.09


def draw(summary: pd.DataFrame, save: style.Save, role: str, decodings: tuple[str, ...]) -> None:
    """Accuracy against G.

    Args:
        summary: a row per `Cell`.
        save: is given the finished figure.
        role: role of the benchmarks to show, "in" or "out".
        decodings: the first of these that was evaluated is shown.

    Raises:
        ValueError: if no trained method has such an accuracy.
    """
    cells = shown.accuracy(summary, role, decodings)
    present = cells[(cells.method != UNTRAINED) & cells["mean"].notna()]
    losses = [loss for loss in style.LOSSES if loss in set(present.method.map(lambda m: METHODS[m].loss_type))]
    budgets = sorted(present.num_generations.unique())
    blocks = blocks_of(present)
    with style.panels(len(blocks), len(losses), 1.75) as (figure, grid):
        for place, line in zip(blocks, grid, strict=True):
            own = block(cells, *place)
            for loss, axes in zip(losses, line, strict=True):
                _panel(axes, own, loss, budgets)
            for axes in line:
                style.draw_untrained(axes, own[own.method == UNTRAINED])
                style.percent_axis(axes)
            line[0].set_ylabel("\n".join(place))
        for axes, loss in zip(grid[0], losses, strict=True):
            axes.set_title(style.LOSSES[loss])
        for axes in grid[:-1].flat:
            axes.tick_params(labelbottom=False)
        x = ("G, rollouts in the update", style.bars(present.over))
        style.label(figure, x, f"accuracy (%), {measure_of(present, present.decoding.iloc[0])}")
        style.legend(figure, 3)
        save(figure)


def _panel(axes: Axes, cells: pd.DataFrame, loss: str, budgets: list[int]) -> None:
    for median, look in style.CENTRES.items():
        methods = [m for m, spec in METHODS.items() if spec.loss_type == loss and is_median(m) == median]
        # The lines are the paper's six methods; the control has a table of its own.
        methods = [m for m in methods if median or METHODS[m].baseline is None]
        rows = cells[cells.method.isin(methods)].set_index("num_generations").reindex(budgets)
        style.draw_line(axes, np.arange(len(budgets)) + (DODGE if median else -DODGE), rows, **look)
    style.categories(axes, budgets)
