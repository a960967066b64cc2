"""Computed signal: of one rollout against a prompt's success rate, and the objective that each estimator climbs."""

import pandas as pd
from matplotlib.figure import Figure

from mcgrpo.report.figures import style
from mcgrpo.study.methods import METHODS

ROWS = {"per_rollout": "signal per rollout", "objective": "objective, share at 0.99"}


def draw(points: pd.DataFrame) -> Figure:
    """A column of panels for each G: above the squared signal to noise of one rollout, below the implicit objective.

    Methods with the same estimator share a line. The objective is over its value at the largest rate, since a factor
    does not matter.
    """
    budgets = sorted(points.num_generations.unique())
    figure, grid = style.named_panels(list(ROWS.values()), [f"G = {budget}" for budget in budgets], 1.75)
    for column, budget in enumerate(budgets):
        for method, name in _lines(points).items():
            own = points[(points.method == method) & (points.num_generations == budget)].sort_values("rate")
            if own.empty:
                continue
            spec, dashes = METHODS[method], style.look_of(method)["linestyle"]
            look = {"color": style.LOSS_COLOURS[spec.loss_type], "linestyle": dashes, "linewidth": 1.2, "label": name}
            grid[0, column].plot(100 * own.rate, own.per_rollout, **look)
            grid[1, column].plot(100 * own.rate, own.objective / own.objective.iloc[-1], **look)
    for axes in grid[0]:
        axes.set_ylim(bottom=0)
    style.label(figure, 3, ("success rate of a prompt (%)",))
    return figure


def _lines(points: pd.DataFrame) -> dict[str, str]:
    """One method for each estimator, in the order of `METHODS`, with the labels of all that have it."""
    labels: dict[str, dict[str, str]] = {}
    for method, spec in METHODS.items():
        if method in set(points.method):
            labels.setdefault(spec.estimator, {})[method] = spec.label
    return {next(iter(own)): ", ".join(own.values()) for own in labels.values()}
