"""The paper's first figure: accuracy against G of one setting, all six methods in one panel."""

import numpy as np
import pandas as pd

from mcgrpo.analyse.frames import DECODINGS, accuracies, is_median
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import measure_of
from mcgrpo.study.methods import METHODS, UNTRAINED

FILLS = dict(zip(style.LOSSES, ("full", "none", "left"), strict=True))
METHODS_SHOWN = [method for method, spec in METHODS.items() if spec.baseline is None or is_median(method)]
DODGE = 0.07


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """Accuracy against G of the first setting that has all losses: greedy where evaluated, else sampled.

    Args:
        summary: a row per `Cell`.
        save: is given the finished figure.

    Raises:
        ValueError: where no setting has an in-distribution accuracy for every loss.
    """
    cells = accuracies(summary, "in")
    setting, benchmark, decoding = _chosen(cells)
    cells = cells[(cells.setting == setting) & (cells.benchmark == benchmark) & (cells.decoding == decoding)]
    shown = cells[cells.method.isin(METHODS_SHOWN)]
    budgets = sorted(shown[shown["mean"].notna()].num_generations.unique())
    with style.panels(1, 1, 2.4) as (figure, grid):
        axes = grid[0, 0]
        for place, method in enumerate(METHODS_SHOWN):
            rows = shown[shown.method == method].set_index("num_generations").reindex(budgets)
            offset = DODGE * (place - (len(METHODS_SHOWN) - 1) / 2)
            style.draw_line(axes, np.arange(len(budgets)) + offset, rows, **_look(method))
        style.draw_untrained(axes, cells[cells.method == UNTRAINED])
        style.percent_axis(axes)
        style.categories(axes, budgets)
        axes.set_title(f"{setting}, {benchmark}")
        axes.set_xlabel("\n".join(filter(None, ("G, rollouts in the update", style.bars(shown.over)))))
        axes.set_ylabel(f"accuracy (%), {measure_of(shown, decoding)}")
        style.legend(figure, 3)
        save(figure)


def _chosen(cells: pd.DataFrame) -> tuple[str, str, str]:
    """Setting, benchmark and decoding: the first in the file that has every loss, greedy before sampled."""
    present = cells[cells.method.isin(METHODS_SHOWN) & cells["mean"].notna()]
    losses = present.method.map(lambda method: METHODS[method].loss_type)
    held = losses.groupby([present.setting, present.benchmark, present.decoding], sort=False).nunique()
    full = held[held == len(style.LOSSES)].index
    if full.empty:
        raise ValueError(
            f"nothing to show: no setting has an accuracy for each of {', '.join(style.LOSSES.values())} on a "
            "benchmark of role 'in' (variant default)"
        )
    setting, benchmark, _ = full[0]
    return setting, benchmark, next(d for d in DECODINGS if (setting, benchmark, d) in full)


def _look(method: str) -> dict:
    """One colour and one fill of the marker for each loss; marker and dashes by centre."""
    loss, centre = METHODS[method].loss_type, style.CENTRES[is_median(method)]
    colour, fill = style.LOSS_COLOURS[loss], FILLS[loss]
    face = {"markerfacecolor": "white" if fill == "none" else colour, "markerfacecoloralt": "white"}
    filled = {"fillstyle": "left" if fill == "left" else "full", "markeredgecolor": colour, "markeredgewidth": 0.8}
    size = {"markersize": centre["markersize"] + 0.5}
    return centre | face | filled | size | {"color": colour, "label": METHODS[method].label}
