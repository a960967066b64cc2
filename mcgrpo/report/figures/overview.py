"""The method on one prompt: G+1 rollouts, their rewards, median and MAD, advantages, the pivot dropped, the update."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from mcgrpo.report.figures import style

QUESTION = "Ann fills 3 boxes\nwith 4 pens each.\nHow many pens\nare in the boxes?"
GOLD = "12"
ANSWERS = ("12", "7", "12.0", "12", "34")
"""The final answers of G+1 rollouts."""
REWARDS = (2.0, 0.0, 1.5, 2.0, 0.0)
"""Rewards of the answers by the GSM8K reward: 2 for the exact text, 1.5 for an equal number, else 0."""
EPSILON = 1e-3
HEIGHT = 2.5
FILL = {"facecolor": "0.95", "edgecolor": "0.3", "linewidth": 0.8}
HEADS = {
    0.58: "prompt $q$",
    1.93: "$G+1$ rollouts",
    2.82: "reward $r_i$",
    3.75: "baseline, scale",
    4.90: "advantage $A_i$",
    6.25: "update",
}


class Example(NamedTuple):
    """One group: its median, median absolute deviation, advantages, and the index of the pivot."""

    median: float
    mad: float
    advantages: list[float]
    pivot: int


def example(rewards: Sequence[float] = REWARDS, epsilon: float = EPSILON) -> Example:
    """MC-GRPO, Eqs. 2 to 5, for one odd group; the pivot is the first rollout whose reward is the median."""
    values = np.array(rewards)
    median = np.median(values)
    mad = np.median(np.abs(values - median))
    advantages = (values - median) / (mad + epsilon)
    return Example(float(median), float(mad), advantages.tolist(), int(np.argmin(np.abs(values - median))))


def draw() -> Figure:
    """The overview, two columns wide. Needs no data."""
    group = example()
    figure, grid = style.panels(1, 1, HEIGHT - style.MARGIN, width=style.WIDE)
    axes = grid[0, 0]
    axes.set(xlim=(0, style.WIDE), ylim=(0, HEIGHT))
    axes.set_axis_off()
    figure.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))  # one unit is one inch
    for x, text in HEADS.items():
        axes.text(x, HEIGHT - 0.1, text, **style.MIDDLE, weight="bold")
    heights = [HEIGHT - 0.45 - 0.37 * row for row in range(len(REWARDS))]
    middle = heights[len(heights) // 2]
    _box(axes, (0.04, 1.12), middle, 1.1, f"{QUESTION}\n\n(answer: {GOLD})")
    _box(axes, (3.27, 4.23), middle, 1.1, f"median\n$b$ = {group.median:g}\n\nMAD = {group.mad:g}")
    _box(axes, (5.80, 6.70), middle, 1.1, f"policy\ngradient on\n$G$ = {len(REWARDS) - 1}\nrollouts")
    for row, height in enumerate(heights):
        _rollout(axes, row, height, middle, group)
    _formulas(axes, heights[-1] - 0.36)
    return figure


def _rollout(axes: Axes, row: int, height: float, middle: float, group: Example) -> None:
    """One row: the answer, its reward and its advantage; grey, dashed and without an arrow for the pivot."""
    pivot, advantage = row == group.pivot, group.advantages[row]
    _arrow(axes, (1.13, middle), (1.40, height))
    _box(axes, (1.43, 2.43), height, 0.27, f"$o_{row + 1}$: answer {ANSWERS[row]}")
    axes.text(2.82, height, f"{REWARDS[row]:g}", **style.MIDDLE)
    _arrow(axes, (2.45, height), (2.68, height))
    _arrow(axes, (2.96, height), (3.24, height + 0.5 * (middle - height)))
    _arrow(axes, (4.25, height + 0.5 * (middle - height)), (4.57, height))
    colour = "0.45" if pivot else style.PALETTE[2] if advantage > 0 else style.PALETTE[3]
    text = "0: pivot" if pivot else f"{advantage:+.2f}".replace("-", "\N{MINUS SIGN}")
    look = {"facecolor": "white", "edgecolor": colour, "linewidth": 1.1, "linestyle": ":" if pivot else "-"}
    _box(axes, (4.60, 5.20), height, 0.27, text, **look)
    if pivot:
        axes.text(5.25, height, "dropped", ha="left", va="center", fontsize=7, color=colour, style="italic")
    else:
        _arrow(axes, (5.22, height), (5.77, height + 0.5 * (middle - height)))


def _formulas(axes: Axes, height: float) -> None:
    scale = r"$b = \mathrm{median}(r)$,   MAD $= \mathrm{median}(|r - b|)$"
    rule = rf"$A_i = (r_i - b)\,/\,(\mathrm{{MAD}} + \epsilon)$,   $\epsilon$ = {EPSILON:g}"
    rewards = "reward: 2 for the answer's exact text, 1.5 for the same number in another spelling, else 0"
    text = f"{scale},   {rule}\n{rewards}"
    axes.text(style.WIDE / 2, height, text, **style.MIDDLE, fontsize=7)


def _box(axes: Axes, across: tuple[float, float], middle: float, height: float, text: str, **look) -> None:
    left, right = across
    shape = "round,pad=0,rounding_size=0.05"
    corner = (left, middle - height / 2)
    axes.add_patch(FancyBboxPatch(corner, right - left, height, boxstyle=shape, **FILL | look))
    axes.text((left + right) / 2, middle, text, **style.MIDDLE, fontsize=7.5)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 6, "color": "0.3", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(start, end, **look))
