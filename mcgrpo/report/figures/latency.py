"""The seconds of a training step by phase, as stacked bars."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.curves import PHASES
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.study.methods import label
from mcgrpo.study.variants import DEFAULT

BOTH = ("grpo", "mc-grpo")
BUDGET = 4
"""The G of the paper's latency figure; a setting without it shows the nearest."""
NAMES = dict(zip(PHASES, ("generation", "rewards", "log-probabilities", "update"), strict=True))
COLOURS = dict(zip(NAMES.values(), (facets.PALETTE[9], facets.PALETTE[8], facets.PALETTE[4], "0.75"), strict=True))
CELL = ["setting", "method", "num_generations"]
ROOM = 0.14
"""Smallest share of the axis with room for a number."""


def latency(summary: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Mean seconds of each phase, GRPO above MC-GRPO, a panel for each setting at the G nearest to `BUDGET` of both.

    The mean is over the steps of a run, then over seeds; a phase that was not recorded has no bar.
    """
    points = curves[(curves.variant == DEFAULT) & curves.method.isin(BOTH)]
    timed = points[points[list(PHASES)].notna().any(axis=1)]
    seconds = timed.groupby([*CELL, "seed"])[list(PHASES)].mean().groupby(CELL).mean().reset_index()
    seconds = seconds[seconds.groupby(["setting", "num_generations"]).method.transform("nunique") == len(BOTH)]
    seconds = facets.shown(seconds, "setting has seconds per step of GRPO and MC-GRPO at one G")
    nearest = (seconds.num_generations - BUDGET).abs().groupby(seconds.setting).idxmin()
    seconds = seconds.merge(seconds.loc[nearest, ["setting", "num_generations"]])
    extra = summary[summary.variant == DEFAULT].groupby(CELL).extra_rollouts.first()
    rows = facets.in_order(seconds.join(extra, on=CELL)).assign(column="")
    runs = timed.merge(rows[CELL]).groupby(CELL).seed.nunique()
    below = ("seconds per optimizer step (mean over steps and seeds)", f"{wording.counts(runs, 'seed')} a cell")
    return facets.draw(rows, _bars, 1.1, below, sharey="none")


def _bars(axes: Axes, rows: pd.DataFrame) -> None:
    drawn = [wording.rollouts(row.num_generations, row.extra_rollouts) for row in rows.itertuples()]
    names = [f"{label(method)}\nG = {rollouts}" for method, rollouts in zip(rows.method, drawn, strict=True)]
    times = rows[list(NAMES)].rename(columns=NAMES).set_axis(names).dropna(axis=1, how="all")
    colours = [COLOURS[name] for name in times]
    times.plot.barh(stacked=True, ax=axes, color=colours, legend=False, xlim=(0, 1.15 * times.sum(axis=1).max()))
    for bars in axes.containers:
        texts = [f"{width:.3g} s" if width > ROOM * axes.get_xlim()[1] else "" for width in bars.datavalues]
        axes.bar_label(bars, texts, label_type="center", fontsize=7)
    axes.bar_label(bars, [f" {total:.3g} s" for total in times.sum(axis=1)], fontsize=7, weight="bold")
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
