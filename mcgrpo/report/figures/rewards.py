"""The training reward over steps, as the mean over all rollouts drawn."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.stats import half_width
from mcgrpo.report.figures import style
from mcgrpo.study.methods import METHODS

LOSSES = list(style.LOSSES)
MOST_ROWS = 6
"""Maximum rows of panels on a page."""


def draw(points: pd.DataFrame) -> Figure:
    """True mean reward over steps: a column for each G, a row for each setting and loss, a line for each method.

    If the rows do not fit on a page, the losses of a setting share a panel, with one colour each. Runs are smoothed by
    a centred rolling mean, whose window is on the x axis; bands are 95% t intervals over seeds.
    """
    window = 2 * (points.step.nunique() // 20) + 1
    smooth = _smooth(points, window)
    smooth["loss"] = smooth.method.map(lambda method: METHODS[method].loss_type)
    pairs = sorted(
        set(zip(smooth.setting, smooth.loss, strict=True)), key=lambda each: (each[0], LOSSES.index(each[1]))
    )
    apart = len(pairs) <= MOST_ROWS
    rows = pairs if apart else sorted({(setting, "") for setting, _ in pairs})
    budgets = sorted(points.num_generations.unique())
    names = ["\n".join(filter(None, (setting, style.LOSSES.get(loss)))) for setting, loss in rows]
    figure, grid = style.named_panels(names, [f"G = {budget}" for budget in budgets], 1.5)
    for (setting, loss), line in zip(rows, grid, strict=True):
        own = smooth[(smooth.setting == setting) & ((smooth.loss == loss) | (not apart))]
        for budget, axes in zip(budgets, line, strict=True):
            _panel(axes, own[own.num_generations == budget], apart)
    style.leave_empty(grid)
    rolling = f"rolling mean over {window}" if window > 1 else ""
    band = "band: 95% interval over seeds" if smooth.half.notna().any() else "one seed"
    columns = 3 if apart else -(-smooth.method.nunique() // 2)
    x = [f"step ({', '.join(filter(None, (rolling, band)))})"]
    style.label(figure, columns, x, "mean reward of all rollouts")
    return figure


def _smooth(points: pd.DataFrame, window: int) -> pd.DataFrame:
    """Mean over seeds of the smoothed reward, with the half-width of its interval: one row per cell and step."""
    cell = ["setting", "method", "num_generations"]
    points = points.sort_values([*cell, "seed", "step"])
    runs = points.groupby([*cell, "seed"]).reward
    points = points.assign(
        reward=runs.transform(lambda reward: reward.rolling(window, center=True, min_periods=1).mean())
    )
    means = points.groupby([*cell, "step"]).reward.agg(["mean", "sem", "count"]).reset_index()
    return means.assign(half=half_width(means["sem"], means["count"]))


def _panel(axes: Axes, rows: pd.DataFrame, apart: bool) -> None:
    for method in [m for m in METHODS if m in set(rows.method)]:
        own = rows[rows.method == method]
        look = {name: style.look_of(method)[name] for name in ("label", "color", "linestyle")}
        if not apart:
            look |= {"label": METHODS[method].label, "color": style.LOSS_COLOURS[METHODS[method].loss_type]}
        axes.plot(own.step, own["mean"], linewidth=1.2, **look)
        low, high = own["mean"] - own.half, own["mean"] + own.half
        axes.fill_between(own.step, low, high, color=look["color"], alpha=0.15, lw=0)
    style.whole_steps(axes)
