"""Accuracy over a training against steps, rollouts drawn and seconds: what a comparison holds equal decides it."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.report import wording
from mcgrpo.report.figures import style
from mcgrpo.study.methods import METHODS

AXES = {"step": "step", "drawn": "rollouts drawn", "seconds": "seconds of training"}
METHOD_AT_G = ["setting", "method", "num_generations"]


def draw(points: pd.DataFrame) -> Figure:
    """Accuracy of the rollouts drawn: a row of panels for each setting, a column for each of `AXES`.

    A line is the mean over the seeds of a method at one G, smoothed per run by a centred rolling mean; colours are G,
    dashes the centre.
    """
    window = 2 * (points.step.nunique() // 10) + 1
    means = _means(points, window)
    settings = list(dict.fromkeys(means.setting))
    budgets = sorted(means.num_generations.unique())
    colours = dict(zip(budgets, sns.color_palette("viridis_r", len(budgets) + 1)[1:], strict=True))
    figure, grid = style.panels(len(settings), len(AXES), 2.0)
    for setting, line in zip(settings, grid, strict=True):
        for column, axes in zip(AXES, line, strict=True):
            _panel(axes, means[means.setting == setting], column, colours)
        line[0].set_ylabel(setting)
    for axes, name in zip(grid[-1], AXES.values(), strict=True):
        axes.set_xlabel(name)
    smoothed = f"; rolling mean over {window} steps" if window > 1 else ""
    seeds = points.groupby(METHOD_AT_G).seed.nunique()
    note = f"mean over {wording.counts(seeds, 'seed')}{smoothed}"
    style.label(figure, 3, (note,), "accuracy of the rollouts drawn (%)")
    return figure


def _means(points: pd.DataFrame, window: int) -> pd.DataFrame:
    """Smoothed accuracy, rollouts and seconds so far, a row for each cell and step: means over seeds."""
    points = points.assign(
        accuracy=points.groupby([*METHOD_AT_G, "seed"]).accuracy.transform(
            lambda accuracy: accuracy.rolling(window, center=True, min_periods=1).mean()
        ),
        drawn=points.groupby([*METHOD_AT_G, "seed"]).rollouts.cumsum(),
    )
    return points.groupby([*METHOD_AT_G, "step"])[["accuracy", "drawn", "seconds"]].mean().reset_index()


def _panel(axes: Axes, rows: pd.DataFrame, column: str, colours: dict) -> None:
    for method in [method for method in METHODS if method in set(rows.method)]:
        for budget, colour in colours.items():
            own = rows[(rows.method == method) & (rows.num_generations == budget)]
            if len(own):
                look = style.look_of(method)["linestyle"]
                name = f"{METHODS[method].label}, G = {budget}"
                axes.plot(own[column], 100 * own.accuracy, color=colour, linestyle=look, linewidth=1.2, label=name)
    if column == "step":
        style.whole_steps(axes)
    if column == "seconds" and not rows.seconds.any():
        axes.text(0.5, 0.5, "not recorded", transform=axes.transAxes, **style.MIDDLE)
