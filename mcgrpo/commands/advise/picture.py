"""The picture of an advice: the ranking with its intervals, signal against success rate, and what is climbed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from torch import Tensor

from mcgrpo.commands.advise.ranking import Candidate, Costs, Row
from mcgrpo.estimators import signal
from mcgrpo.files import atomic

SHOWN = 16
"""Rows of the ranking at most."""
CURVES = 7
"""Estimators whose curves are drawn at most."""
ALWAYS = ("mean-std", "median-mad")
"""Estimators that are drawn wherever they rank: GRPO and MC-GRPO."""
RATES = np.linspace(0.01, 0.99, 50)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def draw(
    path: Path, rows: Sequence[Row], curves: Sequence[tuple[str, Tensor, Tensor]], unit: str, shares: Tensor
) -> None:
    """Write the picture as PNG.

    Args:
        path: of the file.
        rows: the ranking.
        curves: of some estimators: name, signal per unit at `RATES`, and what the objective counts a prompt, over what
            it counts one of success rate 1/2.
        unit: of what signal is counted per, "rollout" or "second".
        shares: (10,), the share of prompts in each tenth of success rates.
    """
    with mpl.rc_context({**sns.axes_style("whitegrid"), "font.size": 8}):
        figure, (left, middle, right) = plt.subplots(
            1, 3, figsize=(11, 4.2), layout="constrained", width_ratios=(1.15, 1, 1)
        )
        _ranking(left, rows[:SHOWN], len(rows), unit)
        colours = sns.color_palette("colorblind")
        for index, (name, per_unit, weight) in enumerate(curves):
            look = {"color": colours[index % len(colours)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.5}
            middle.plot(RATES, per_unit.tolist(), label=_short(name), **look)
            right.plot(RATES, weight.tolist(), **look)
        bars = _where_prompts_are(middle, shares)
        middle.set_title(f"signal per {unit}, at G = {rows[0].num_generations}")
        middle.set_ylabel("squared signal to noise")
        right.set_title("weight of a prompt in the objective")
        right.set_ylabel("over a prompt of success rate 1/2")
        right.set_yscale("log", base=2)
        right.yaxis.set_major_formatter("{x:g}")
        for axes in (middle, right):
            axes.set_xlabel("success rate of a prompt")
            axes.set_xlim(0, 1)
        middle.set_ylim(bottom=0)
        handles, names = middle.get_legend_handles_labels()
        figure.legend([*handles, bars], [*names, bars.get_label()], loc="outside lower center", ncols=4, frameon=False)
        with atomic(path) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
        plt.close(figure)


def _ranking(axes: Axes, rows: Sequence[Row], of: int, unit: str) -> None:
    places = np.arange(len(rows))
    values = np.array([row.of_first for row in rows])
    ends = np.array([[row.of_first_low, row.of_first_high] for row in rows]).T
    axes.errorbar(values, places, xerr=np.clip([values - ends[0], ends[1] - values], 0, None), fmt="o", color="0.2")
    axes.set_yticks(places, [f"{_short(row.estimator)}, G = {row.num_generations}" for row in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.axvline(1, color="0.6", linewidth=0.8)
    axes.set_xlabel("over the first; bars: 95% interval over prompts")
    axes.set_title(f"signal per {unit}: the first {len(rows)} of {of}" if len(rows) < of else f"signal per {unit}")


def _short(name: str) -> str:
    """At most two of the names of equal estimators."""
    names = name.split(" = ")
    return " = ".join([*names[:2], "..."] if len(names) > 2 else names)


def _where_prompts_are(axes: Axes, shares: Tensor) -> BarContainer:
    below = axes.twinx()
    bars = below.bar(
        np.linspace(0.05, 0.95, len(shares)),
        shares.tolist(),
        width=0.09,
        color="0.88",
        label="share of prompts (0 to 1)",
    )
    below.set_ylim(0, 1)
    below.set_yticks([])
    below.grid(visible=False)
    axes.set_zorder(below.get_zorder() + 1)
    axes.patch.set_visible(False)
    return bars


def curves_of(
    rows: Sequence[Row], candidates: Sequence[Candidate], failures: Tensor, costs: Costs, **options: Any
) -> list[tuple[str, Tensor, Tensor]]:
    """The curves of the estimators that rank first at the first's G, and of GRPO and MC-GRPO.

    Args:
        rows: the ranking.
        candidates: those that are ranked.
        failures: (levels,), how successes are spread over the levels; the first is 0.
        costs: of a step.
        **options: of `signal`.
    """
    size = rows[0].num_generations
    there = {each.name: each for each in candidates if each.signal.num_generations == size}
    ranked = [row.estimator for row in rows if row.num_generations == size]
    always = [name for name in ranked if set(ALWAYS) & set(there[name].names)]
    names = [name for name in ranked if name in {*always, *ranked[: CURVES - len(always)]}]
    rates = torch.tensor([*RATES, 0.5], dtype=torch.float64).unsqueeze(1)
    points = rates * failures
    points[:, 0] = 1 - rates[:, 0]
    curves = []
    for name in names:
        own = signal(there[name].names[0], size, there[name].signal.levels, points, **options)
        slope = own.gain / own.climb.square().sum(dim=1)
        per_unit = Candidate((name,), own, costs).efficiency(torch.eye(len(points), dtype=torch.float64))
        curves.append((name, per_unit[:-1], slope[:-1] / slope[-1]))
    return curves
