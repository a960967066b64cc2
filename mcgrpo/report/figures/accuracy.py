"""Accuracy against G: a row of panels for each setting and benchmark, a column for each loss (15 in the paper)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.report.shown import FIRST_METHODS
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median

DODGE = {False: -0.09, True: 0.09}
"""Offset of the lines along the x axis, by whether a method centres on the median."""


def draw(cells: pd.DataFrame) -> Figure:
    """Accuracy against G of the paper's six methods; the control has a table of its own."""
    present = cells[(cells.method != UNTRAINED) & cells["mean"].notna()]
    losses, blocks = style.losses_of(present.method), blocks_of(present)
    budgets = sorted(present.num_generations.unique())
    figure, grid = style.named_panels(["\n".join(each) for each in blocks], [style.LOSSES[x] for x in losses], 1.75)
    for place, line in zip(blocks, grid, strict=True):
        own = block(cells, *place)
        for loss, axes in zip(losses, line, strict=True):
            for method in [m for m in FIRST_METHODS if METHODS[m].loss_type == loss]:
                rows, look = own[own.method == method], style.look_of(method)
                style.draw_line(axes, rows, "num_generations", budgets, DODGE[is_median(method)], **look)
            style.categories(axes, budgets)
        for axes in filter(Axes.has_data, line):
            style.accuracy_axis(axes, own[own.method == UNTRAINED])
    style.leave_empty(grid)
    x = (style.ROLLOUTS, style.bars(present.over))
    style.label(figure, 3, x, f"accuracy (%), {measure_of(present)}")
    return figure
