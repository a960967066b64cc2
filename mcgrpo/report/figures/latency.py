"""Wall-clock seconds of an optimizer step, by phase."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mcgrpo.report import shown, wording
from mcgrpo.report.figures import style
from mcgrpo.study.methods import label

LOOKS = (
    ("generation", style.PALETTE[9], "///"),
    ("rewards", style.PALETTE[8], "..."),
    ("log-probabilities", style.PALETTE[4], "\\\\\\"),
    ("update", "0.75", ""),
)
PHASES = dict(zip(shown.PHASES, LOOKS, strict=True))
SMALL = style.MIDDLE | {"fontsize": 7}
ROOM = 0.125
"""Smallest share of the axis with room for a label."""


def draw(curves: pd.DataFrame, save: style.Save) -> None:
    """Mean seconds of each phase of a step, GRPO above MC-GRPO, a panel for each setting.

    Args:
        curves: a row per `CurvePoint`; the mean is over the steps of a run, then over seeds.
        save: is given the finished figure.

    Raises:
        ValueError: if no setting has seconds of both methods at one G.
    """
    points = shown.latency(curves)
    seconds = _seconds(points)
    settings = points.groupby("setting").num_generations.first()
    longest = seconds.sum(axis=1).max()
    scale, unit, units = (1000, "ms", "milliseconds") if longest < 1 else (1, "s", "seconds")
    with style.flow(len(settings), 1.25, columns=1, width=style.WIDE) as (figure, grid):
        for (setting, budget), axes in zip(settings.items(), grid, strict=True):
            own = seconds.loc[[(setting, method, budget) for method in shown.LATENCY_METHODS]]
            _bars(axes, scale * own.to_numpy(), unit)
            names = [f"{label(m)}\nG = {wording.rollouts(m, budget)}" for m in shown.LATENCY_METHODS]
            axes.set_yticks(range(len(names)), names)
            axes.set_title(setting)
        missing = [name for phase, (name, *_) in PHASES.items() if seconds[phase].isna().all()]
        note = f"not recorded: {', '.join(missing)}" if missing else ""
        style.label(figure, (f"{units} per optimizer step (mean over steps and seeds), and share of their sum", note))
        style.legend(figure, 4)
        save(figure)


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
        for (name, colour, hatch), value in zip(PHASES.values(), values, strict=True):
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
