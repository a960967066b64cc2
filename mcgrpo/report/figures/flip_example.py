"""A constructed example of a sign flip: one rollout's advantage among 8 rollouts, and among 4 of them."""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, median
from typing import NamedTuple

from matplotlib.axes import Axes

from mcgrpo.report.figures import style

REWARDS = (0.5, 0.4, 0.3, 1.0, 0.2, 0.1, 0.4, 0.3)
"""Rewards of 8 rollouts of one prompt; the first is the example, the fourth an outlier."""
DRAWN = (0, 1, 2, 3)
"""Indices of the small set."""
SMALL = style.MIDDLE | {"fontsize": 7}
BASELINES = {"mean": fmean, "median": median}


class Flips(NamedTuple):
    """The number of small sets with the example rollout, and of those in which its advantage has the opposite sign."""

    flipped: int
    sets: int


def advantage(rewards: Sequence[float], baseline: str) -> float:
    """The first reward minus the baseline of all."""
    return rewards[0] - BASELINES[baseline](rewards)


def small_set() -> list[float]:
    """The rewards of the small set, with the example rollout first."""
    return [REWARDS[index] for index in DRAWN]


def count_flips(baseline: str) -> Flips:
    """Count the sets of `len(DRAWN)` with the example rollout that flip its sign, by enumeration."""
    whole = advantage(REWARDS, baseline)
    others = combinations(REWARDS[1:], len(DRAWN) - 1)
    products = [whole * advantage((REWARDS[0], *rest), baseline) for rest in others]
    return Flips(sum(product < -1e-12 for product in products), len(products))


def draw_example(axes: Axes) -> None:
    """Rewards as dots with both baselines: all rollouts on the left, the small set on the right."""
    small, gap = small_set(), len(REWARDS) + 0.8
    for start, rewards in ((0, REWARDS), (gap, small)):
        centre, end = start + (len(rewards) - 1) / 2, start + len(rewards) - 1
        for median_centred, (name, baseline) in zip((False, True), BASELINES.items(), strict=True):
            look = {key: style.CENTRES[median_centred][key] for key in ("color", "linestyle")}
            axes.plot([start - 0.4, end + 0.4], [baseline(rewards)] * 2, linewidth=1.4, **look, label=f"_{name}")
            text = f"{name}: {advantage(rewards, name):+.2f}".replace("-", "\N{MINUS SIGN}")
            height = -0.33 - 0.17 * median_centred
            axes.text(centre, height, text, **SMALL, color=look["color"], weight="bold")
        positions = [start + index for index in range(len(rewards))]
        axes.plot(positions[1:], rewards[1:], "o", color="0.55", markersize=4)
        axes.plot(positions[:1], rewards[:1], "D", color="black", markersize=5)
        axes.text(centre, 1.13, f"{len(rewards)} rollouts", **SMALL)
    middle = (gap + len(small) - 1) / 2
    watched = f"advantage of the {REWARDS[0]:g}-reward rollout"
    axes.text(middle, -0.16, watched, **SMALL)
    counts = {name: count_flips(name) for name in BASELINES}
    sets = counts["mean"].sets
    share = ", ".join(f"{name} {count.flipped}" for name, count in counts.items())
    axes.text(middle, -0.69, f"flips in the {sets} sets of {len(small)} with it: {share}", **SMALL)
    axes.axvline(gap - 0.9, ymin=0.35, color="0.8", linewidth=0.8)
    axes.set(ylim=(-0.8, 1.22), xlim=(-0.9, gap + len(small) - 0.1), xticks=[], yticks=[0, 0.5, 1], ylabel="reward")
    axes.set_title("(a) constructed example")
    axes.grid(visible=False)
