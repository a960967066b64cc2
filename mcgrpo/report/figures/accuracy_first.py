"""The paper's first figure: accuracy against G of one setting, all six methods in one panel."""

import numpy as np
import pandas as pd

from mcgrpo.analyse.frames import is_median
from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import blocks_of, measure_of
from mcgrpo.study.methods import METHODS, UNTRAINED

FILLS = dict(zip(style.LOSSES, ("full", "none", "left"), strict=True))
DODGE = 0.07


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """Accuracy against G in the first setting that has all losses: greedy if evaluated, else sampled.

    Args:
        summary: a row per `Cell`.
        save: is given the finished figure.

    Raises:
        ValueError: if no setting has an in-distribution accuracy for every loss.
    """
    cells = shown.accuracy_first(summary)
    trained = cells[cells.method != UNTRAINED]
    budgets = sorted(trained[trained["mean"].notna()].num_generations.unique())
    with style.panels(1, 1, 2.4) as (figure, grid):
        axes = grid[0, 0]
        for place, method in enumerate(shown.FIRST_METHODS):
            rows = trained[trained.method == method].set_index("num_generations").reindex(budgets)
            offset = DODGE * (place - (len(shown.FIRST_METHODS) - 1) / 2)
            style.draw_line(axes, np.arange(len(budgets)) + offset, rows, **_look(method))
        style.draw_untrained(axes, cells[cells.method == UNTRAINED])
        style.percent_axis(axes)
        style.categories(axes, budgets)
        axes.set_title(", ".join(blocks_of(cells)[0]))
        axes.set_xlabel("\n".join(filter(None, ("G, rollouts in the update", style.bars(trained.over)))))
        axes.set_ylabel(f"accuracy (%), {measure_of(trained, trained.decoding.iloc[0])}")
        style.legend(figure, 3)
        save(figure)


def _look(method: str) -> dict:
    """Colour and marker fill by loss; marker and dashes by centre."""
    loss, centre = METHODS[method].loss_type, style.CENTRES[is_median(method)]
    colour, fill = style.LOSS_COLOURS[loss], FILLS[loss]
    face = {"markerfacecolor": "white" if fill == "none" else colour, "markerfacecoloralt": "white"}
    filled = {"fillstyle": "left" if fill == "left" else "full", "markeredgecolor": colour, "markeredgewidth": 0.8}
    size = {"markersize": centre["markersize"] + 0.5}
    return centre | face | filled | size | {"color": colour, "label": METHODS[method].label}
