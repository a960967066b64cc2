"""Wall-clock seconds of an optimizer step, by phase."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.curves import PHASES
from mcgrpo.report import wording
from mcgrpo.report.figures import style
from mcgrpo.report.shown import LATENCY_METHODS
from mcgrpo.study.methods import label

NAMES = ("generation", "rewards", "log-probabilities", "update")
COLOURS = (style.PALETTE[9], style.PALETTE[8], style.PALETTE[4], "0.75")
HATCHES = ("///", "...", "\\\\\\", "")
LOOKS = dict(zip(PHASES, zip(NAMES, COLOURS, HATCHES, strict=True), strict=True))
SMALL = style.MIDDLE | {"fontsize": 7}
ROOM = 0.125
"""Smallest share of the axis with room for a label."""


def draw(points: pd.DataFrame) -> Figure:
    """Mean seconds of each phase of a step, GRPO above MC-GRPO, a panel for each setting.

    The mean is over the steps of a run, then over seeds.
    """
    seconds = _seconds(points)
    settings = points.groupby("setting").num_generations.first()
    extra = points.groupby(["setting", "method"]).extra_rollouts.first()
    scale, unit, units = (1000, "ms", "milliseconds") if seconds.sum(axis=1).max() < 1 else (1, "s", "seconds")
    figure, grid = style.panels(len(settings), 1, 1.25, width=style.WIDE)
    for (setting, budget), axes in zip(settings.items(), grid[:, 0], strict=True):
        own = seconds.loc[[(setting, method, budget) for method in LATENCY_METHODS]]
        _bars(axes, scale * own.to_numpy(), unit)
        drawn = {method: wording.rollouts(budget, extra[setting, method]) for method in LATENCY_METHODS}
        names = [f"{label(method)}\nG = {rollouts}" for method, rollouts in drawn.items()]
        axes.set_yticks(range(len(names)), names)
        axes.set_title(setting)
    missing = [name for phase, (name, *_) in LOOKS.items() if seconds[phase].isna().all()]
    note = f"not recorded: {', '.join(missing)}" if missing else ""
    style.label(figure, 4, (f"{units} per optimizer step (mean over steps and seeds), and share of their sum", note))
    return figure


def _seconds(points: pd.DataFrame) -> pd.DataFrame:
    """Mean seconds by phase (columns), indexed by setting, method and G."""
    cell = ["setting", "method", "num_generations"]
    runs = points.groupby([*cell, "seed"])[list(PHASES)].mean()
    return runs.groupby(cell).mean()


def _bars(axes: Axes, times: np.ndarray, unit: str) -> None:
    """Stacked horizontal bars; times are methods x phases, NaN where a phase was not recorded."""
    totals = np.nansum(times, axis=1)
    limit = 1.18 * totals.max()
    for row, (values, total) in enumerate(zip(times, totals, strict=True)):
        left, outside = 0.0, -np.inf
        for (name, colour, hatch), value in zip(LOOKS.values(), values, strict=True):
            if np.isnan(value):
                continue
            look = {"color": colour, "hatch": hatch, "edgecolor": "0.25", "linewidth": 0.6, "label": name}
            axes.barh(row, value, left=left, height=0.5, **look)
            text = f"{_text(value)} {unit}, {_share(value / total)}"
            if value > ROOM * limit:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
                axes.text(left + value / 2, row, text, **SMALL, bbox=box)
            elif value > 0:
                outside = max(left + value / 2, outside + ROOM * limit)
                axes.text(outside, row - 0.38, text, **SMALL)
            left += value
        axes.text(left + 0.01 * limit, row, f"{_text(total)} {unit}", ha="left", va="center", fontsize=7, weight="bold")
    axes.set(xlim=(0, limit), ylim=(len(times) - 0.6, -0.65))
    axes.grid(visible=False, axis="y")


def _text(value: float) -> str:
    """Three significant digits, or a whole number from 100."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _share(share: float) -> str:
    """Whole percent, with one decimal below 1."""
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
