"""The training reward over steps, as the mean over all rollouts drawn."""

import pandas as pd
from matplotlib.axes import Axes

from mcgrpo.analyse.stats import half_width
from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.study.methods import METHODS

MOST_ROWS = 6
"""Maximum rows of panels on a page."""


def draw(curves: pd.DataFrame, save: style.Save) -> None:
    """True mean reward over steps: a column for each G, a row for each setting and loss, a line for each method.

    If the rows do not fit on a page, the losses of a setting share a panel, with one colour each. Runs are smoothed by
    a centred rolling mean, whose window is on the x axis; bands are 95% t intervals over seeds.

    Args:
        curves: a row per `CurvePoint`.
        save: is given the finished figure.

    Raises:
        ValueError: if no step of a run has a reward.
    """
    points = shown.rewards(curves)
    window = 2 * (points.step.nunique() // 20) + 1
    smooth = _smooth(points, window)
    smooth["loss"] = smooth.method.map(lambda method: METHODS[method].loss_type)
    pairs = sorted(set(zip(smooth.setting, smooth.loss, strict=True)), key=_place)
    apart = len(pairs) <= MOST_ROWS
    rows = pairs if apart else sorted({(setting, "") for setting, _ in pairs})
    budgets = sorted(points.num_generations.unique())
    with style.panels(len(rows), len(budgets), 1.5) as (figure, grid):
        for (setting, loss), line in zip(rows, grid, strict=True):
            own = smooth[(smooth.setting == setting) & ((smooth.loss == loss) | (not apart))]
            for budget, axes in zip(budgets, line, strict=True):
                _panel(axes, own[own.num_generations == budget], apart)
            line[0].set_ylabel("\n".join(filter(None, (setting, style.LOSSES.get(loss)))))
        for axes, budget in zip(grid[0], budgets, strict=True):
            axes.set_title(f"G = {budget}")
        for axes in grid[:-1].flat:
            axes.tick_params(labelbottom=False)
        rolling = f"rolling mean over {window}" if window > 1 else ""
        band = "band: 95% interval over seeds" if smooth.half.notna().any() else "one seed"
        style.label(figure, [f"step ({', '.join(filter(None, (rolling, band)))})"], "mean reward of all rollouts")
        style.legend(figure, 3 if apart else -(-smooth.method.nunique() // 2))
        save(figure)


def _place(pair: tuple[str, str]) -> tuple[str, int]:
    return pair[0], list(style.LOSSES).index(pair[1])


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
