"""The paper's first figure: accuracy against G of one setting, all six methods in one panel."""

import pandas as pd
from matplotlib.figure import Figure

from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import blocks_of, measure_of
from mcgrpo.report.shown import FIRST_METHODS
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median

FILLS = dict(zip(style.LOSSES, ("full", "none", "left"), strict=True))
DODGE = 0.07


def draw(cells: pd.DataFrame) -> Figure:
    """Accuracy against G in one setting."""
    trained = cells[cells.method != UNTRAINED]
    budgets = sorted(trained[trained["mean"].notna()].num_generations.unique())
    figure, grid = style.panels(1, 1, 2.4)
    axes = grid[0, 0]
    for number, method in enumerate(FIRST_METHODS):
        offset = DODGE * (number - (len(FIRST_METHODS) - 1) / 2)
        rows = trained[trained.method == method]
        style.draw_line(axes, rows, "num_generations", budgets, offset, **_look(method))
    style.accuracy_axis(axes, cells[cells.method == UNTRAINED])
    style.categories(axes, budgets)
    axes.set_title(", ".join(blocks_of(cells)[0]))
    axes.set_xlabel("\n".join(filter(None, (style.ROLLOUTS, style.bars(trained.over)))))
    axes.set_ylabel(f"accuracy (%), {measure_of(trained)}")
    style.label(figure, 3)
    return figure


def _look(method: str) -> dict:
    """Colour and marker fill by loss; marker and dashes by centre."""
    loss, centre = METHODS[method].loss_type, style.CENTRES[is_median(method)]
    colour, fill = style.LOSS_COLOURS[loss], FILLS[loss]
    return centre | {
        "label": METHODS[method].label,
        "color": colour,
        "markersize": centre["markersize"] + 0.5,
        "fillstyle": "left" if fill == "left" else "full",
        "markerfacecolor": "white" if fill == "none" else colour,
        "markerfacecoloralt": "white",
        "markeredgecolor": colour,
        "markeredgewidth": 0.8,
    }
