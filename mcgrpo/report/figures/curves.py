"""Trainings: curves over their steps, and the seconds of a step by phase."""

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.curves import PHASES
from mcgrpo.analyse.stats import half_width
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.study.methods import METHODS, label
from mcgrpo.study.variants import DEFAULT

_CURVE = ["setting", "method", "num_generations"]
BOTH = ("grpo", "mc-grpo")
BUDGET = 4
"""The G of the paper's latency figure; a setting without it shows the nearest."""
_PHASES = dict(zip(PHASES, ("generation", "rewards", "log-probabilities", "update"), strict=True))
COLOURS = dict(zip(_PHASES.values(), (facets.PALETTE[9], facets.PALETTE[8], facets.PALETTE[4], "0.75"), strict=True))
ROOM = 0.14
"""Smallest share of the axis with room for a number."""
BUDGETS = {"step": "step", "drawn": "rollouts drawn", "seconds": "seconds of training"}


def rewards(curves: pd.DataFrame) -> Figure:
    """True mean reward over steps: a column for each G, a row for each setting, a line for each method.

    Runs are smoothed by a centred rolling mean, whose window is on the x axis; bands are 95% t intervals over seeds.
    """
    points = curves[(curves.variant == DEFAULT) & curves.reward.notna()]
    points = facets.shown(points, f"step has a reward (variant {DEFAULT})")
    points, rolling = _smoothed(points, "reward", 20)
    means = points.groupby([*_CURVE, "step"]).reward.agg(["mean", "sem", "count"]).reset_index()
    means = means.assign(half=half_width(means["sem"], means["count"]))
    means = means.sort_values("num_generations", kind="stable")
    means = facets.in_order(means.assign(column=means.num_generations.map("G = {}".format)))

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for method, own in rows.groupby("method", sort=False):
            colour, dashes = facets.LOSS_COLOURS[facets.LOSSES[method]], facets.LOOKS[method]["linestyle"]
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
    points = curves[(curves.variant == DEFAULT) & curves.method.isin(methods)].sort_values([*_CURVE, "seed", "step"])
    runs = [points[name] for name in (*_CURVE, "seed")]
    spent = points[list(PHASES)].sum(axis=1)  # also in steps that draw nothing
    points = points.assign(seconds=spent.groupby(runs).cumsum(), drawn=points.rollouts.groupby(runs).cumsum())
    points = points[points.rollouts.notna() & points.accuracy.notna()]
    points = facets.shown(points, f"step of GRPO's loss has rollouts and an accuracy (variant {DEFAULT})")
    points, rolling = _smoothed(points, "accuracy", 10)
    means = points.groupby([*_CURVE, "step"], as_index=False)[["accuracy", "drawn", "seconds"]].mean()
    sizes = sorted(means.num_generations.unique())
    colours = dict(zip(sizes, sns.color_palette("viridis_r", len(sizes) + 1)[1:], strict=True))
    parts = [means.assign(column=name, x=means[source]) for source, name in BUDGETS.items()]

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for (method, size), own in rows.groupby(["method", "num_generations"], sort=False):
            name = f"{METHODS[method].label}, G = {size}"
            dashes = facets.LOOKS[method]["linestyle"]
            axes.plot(own.x, 100 * own.accuracy, color=colours[size], linestyle=dashes, linewidth=1.2, label=name)

    below = (", ".join(filter(None, ("mean over seeds", rolling))), _runs(points))
    return facets.draw(facets.in_order(pd.concat(parts)), panel, 2.0, below, "accuracy of the rollouts drawn (%)")


def _smoothed(points: pd.DataFrame, column: str, parts: int) -> tuple[pd.DataFrame, str]:
    """The points with a column smoothed per run, over a window of its steps over `parts`; and what is said of that."""
    points, window = points.sort_values([*_CURVE, "seed", "step"]), 2 * (points.step.nunique() // parts) + 1
    runs = points.groupby([*_CURVE, "seed"])[column]
    smooth = runs.transform(lambda values: values.rolling(window, center=True, min_periods=1).mean())
    return points.assign(**{column: smooth}), f"rolling mean over {window}" if window > 1 else ""


def _runs(points: pd.DataFrame) -> str:
    """The n of trainings: runs, and seeds of each cell."""
    seeds = points.groupby(_CURVE).seed.nunique()
    return f"{wording.count(seeds.sum(), 'run')}, {wording.counts(seeds, 'seed')} a cell"


def latency(summary: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Mean seconds of each phase, GRPO above MC-GRPO, a panel for each setting at the G nearest to `BUDGET` of both.

    The mean is over the steps of a run, then over seeds; a phase that was not recorded has no bar.
    """
    points = curves[(curves.variant == DEFAULT) & curves.method.isin(BOTH)]
    timed = points[points[list(PHASES)].notna().any(axis=1)]
    seconds = timed.groupby([*_CURVE, "seed"])[list(PHASES)].mean().groupby(_CURVE).mean().reset_index()
    seconds = seconds[seconds.groupby(["setting", "num_generations"]).method.transform("nunique") == len(BOTH)]
    seconds = facets.shown(seconds, "setting has seconds per step of GRPO and MC-GRPO at one G")
    nearest = (seconds.num_generations - BUDGET).abs().groupby(seconds.setting).idxmin()
    seconds = seconds.merge(seconds.loc[nearest, ["setting", "num_generations"]])
    extra = summary[summary.variant == DEFAULT].groupby(_CURVE).extra_rollouts.first()
    rows = facets.in_order(seconds.join(extra, on=_CURVE)).assign(column="")
    runs = timed.merge(rows[_CURVE]).groupby(_CURVE).seed.nunique()
    below = ("seconds per optimizer step (mean over steps and seeds)", f"{wording.counts(runs, 'seed')} a cell")
    return facets.draw(rows, _bars, 1.1, below, sharey="none")


def _bars(axes: Axes, rows: pd.DataFrame) -> None:
    drawn = [wording.rollouts(row.num_generations, row.extra_rollouts) for row in rows.itertuples()]
    names = [f"{label(method)}\nG = {rollouts}" for method, rollouts in zip(rows.method, drawn, strict=True)]
    times = rows[list(_PHASES)].rename(columns=_PHASES).set_axis(names).dropna(axis=1, how="all")
    colours = [COLOURS[name] for name in times]
    times.plot.barh(stacked=True, ax=axes, color=colours, legend=False, xlim=(0, 1.15 * times.sum(axis=1).max()))
    for bars in axes.containers:
        texts = [f"{width:.3g} s" if width > ROOM * axes.get_xlim()[1] else "" for width in bars.datavalues]
        axes.bar_label(bars, texts, label_type="center", fontsize=7)
    axes.bar_label(bars, [f" {total:.3g} s" for total in times.sum(axis=1)], fontsize=7, weight="bold")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
