"""Curves: of trainings over their steps, and of computed signal over the success rate of a prompt."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.curves import PHASES
from mcgrpo.analyse.stats import half_width
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.variants import DEFAULT

CELL = ["setting", "method", "num_generations"]
BUDGETS = {"step": "step", "drawn": "rollouts drawn", "seconds": "seconds of training"}


def rewards(curves: pd.DataFrame) -> Figure:
    """True mean reward over steps: a column for each G, a row for each setting, a line for each method.

    Runs are smoothed by a centred rolling mean, whose window is on the x axis; bands are 95% t intervals over seeds.
    """
    points = curves[(curves.variant == DEFAULT) & curves.reward.notna()]
    points = facets.shown(points, f"step has a reward (variant {DEFAULT})")
    points, rolling = _smoothed(points, "reward", 20)
    means = points.groupby([*CELL, "step"]).reward.agg(["mean", "sem", "count"]).reset_index()
    means = means.assign(half=half_width(means["sem"], means["count"]))
    means = means.sort_values("num_generations", kind="stable")
    means = facets.in_order(means.assign(column=means.num_generations.map("G = {}".format)))

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for method, own in rows.groupby("method", sort=False):
            colour = facets.LOSS_COLOURS[METHODS[method].loss_type]
            dashes = facets.look_of(method)["linestyle"]
            axes.plot(own.step, own["mean"], color=colour, linestyle=dashes, label=METHODS[method].label)
            axes.fill_between(own.step, own["mean"] - own.half, own["mean"] + own.half, color=colour, alpha=0.15, lw=0)
        axes.xaxis.get_major_locator().set_params(integer=True)

    band = "band: 95% interval over seeds" if means.half.notna().any() else "one seed"
    below = (f"step ({', '.join(filter(None, (rolling, band)))})", _runs(points))
    return facets.draw(means, panel, 1.9, below, "mean reward of all rollouts")


def budget(curves: pd.DataFrame) -> Figure:
    """Accuracy of the rollouts drawn by GRPO's loss: a row for each setting; columns are steps, rollouts and seconds.

    A line is the mean over the seeds of a method at one G; colours are G, dashes the centre.
    """
    methods = [method for method, spec in METHODS.items() if spec.loss_type == METHODS["grpo"].loss_type]
    points = curves[(curves.variant == DEFAULT) & curves.method.isin(methods)].sort_values([*CELL, "seed", "step"])
    runs = [points[name] for name in (*CELL, "seed")]
    spent = points[list(PHASES)].sum(axis=1)  # also in steps that draw nothing
    points = points.assign(seconds=spent.groupby(runs).cumsum(), drawn=points.rollouts.groupby(runs).cumsum())
    points = points[points.rollouts.notna() & points.accuracy.notna()]
    points = facets.shown(points, f"step of GRPO's loss has rollouts and an accuracy (variant {DEFAULT})")
    points, rolling = _smoothed(points, "accuracy", 10)
    means = points.groupby([*CELL, "step"], as_index=False)[["accuracy", "drawn", "seconds"]].mean()
    sizes = sorted(means.num_generations.unique())
    colours = dict(zip(sizes, sns.color_palette("viridis_r", len(sizes) + 1)[1:], strict=True))
    parts = [means.assign(column=name, x=means[source]) for source, name in BUDGETS.items()]

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for (method, size), own in rows.groupby(["method", "num_generations"], sort=False):
            name = f"{METHODS[method].label}, G = {size}"
            dashes = facets.look_of(method)["linestyle"]
            axes.plot(own.x, 100 * own.accuracy, color=colours[size], linestyle=dashes, linewidth=1.2, label=name)

    below = (", ".join(filter(None, ("mean over seeds", rolling))), _runs(points))
    return facets.draw(facets.in_order(pd.concat(parts)), panel, 2.0, below, "accuracy of the rollouts drawn (%)")


def _smoothed(points: pd.DataFrame, column: str, parts: int) -> tuple[pd.DataFrame, str]:
    """The points with a column smoothed per run, over a window of its steps over `parts`; and what is said of that."""
    points, window = points.sort_values([*CELL, "seed", "step"]), 2 * (points.step.nunique() // parts) + 1
    runs = points.groupby([*CELL, "seed"])[column]
    smooth = runs.transform(lambda values: values.rolling(window, center=True, min_periods=1).mean())
    return points.assign(**{column: smooth}), f"rolling mean over {window}" if window > 1 else ""


def _runs(points: pd.DataFrame) -> str:
    """The n of trainings: runs, and seeds of each cell."""
    seeds = points.groupby(CELL).seed.nunique()
    return f"{wording.count(seeds.sum(), 'run')}, {wording.counts(seeds, 'seed')} a cell"


def signal(signal_curves: pd.DataFrame) -> Figure:
    """A column of panels for each G: above the squared signal to noise of one rollout, below the implicit objective.

    Methods with the same estimator share a line. The objective is over its value at the largest rate, since a factor
    does not matter.
    """
    points = facets.shown(signal_curves, "model has the many rollouts that sign flips are measured on")
    points = facets.in_order(_first_source(points)).sort_values(["num_generations", "order", "rate"])
    points = points.assign(estimator=points.method.map(lambda method: METHODS[method].estimator))
    names = points.groupby("estimator").method.unique().map(lambda all: ", ".join(METHODS[each].label for each in all))
    points = points.drop_duplicates(["estimator", "num_generations", "rate"])
    share = points.objective / points.groupby(["estimator", "num_generations"]).objective.transform("last")
    columns = points.num_generations.map("G = {}".format)
    rows = {"signal per rollout": points.per_rollout, "objective, share at 0.99": share}
    parts = [points.assign(row=name, column=columns, y=values) for name, values in rows.items()]

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for estimator, own in rows.groupby("estimator", sort=False):
            method = own.method.iloc[0]
            look = {"color": facets.LOSS_COLOURS[METHODS[method].loss_type], "label": names[estimator]}
            axes.plot(100 * own.rate, own.y, linestyle=facets.look_of(method)["linestyle"], linewidth=1.2, **look)

    below = ("success rate of a prompt (%)", f"computed from the rewards of {points.source.iloc[0]}")
    return facets.draw(pd.concat(parts), panel, 1.75, below)


def _first_source(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first model that signals are computed for, an untrained one if there is one."""
    sources = list(dict.fromkeys(points.source))
    untrained = [source for source in sources if f"/{UNTRAINED}/" in source]
    return points[points.source == (untrained or sources)[0]]
