"""The rate of sign flips for each baseline over k rollouts."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of

DASHES = {("mean", "zeros"): "--", ("median", "zeros"): "-", ("mean", "strict"): ":", ("median", "strict"): "-."}
DODGE = {"mean": -0.07, "median": 0.07}
BESIDE = 0.13
"""From an exact rate to a sampled one, of the 1 between two k."""


def draw(rates: pd.DataFrame) -> Figure:
    """For each setting the rate against k, of the mean and the median under both conventions."""
    blocks = blocks_of(rates)
    columns = min(len(blocks), 2)
    figure, grid = style.panels(-(-len(blocks) // columns), columns, 2.05, sharey=True, width=style.WIDE)
    for axes in grid.flat[len(blocks) :]:
        axes.remove()
    for place, axes in zip(blocks, grid.flat, strict=False):
        own = block(rates, *place)
        _panel(axes, own, sorted(rates.k.unique()))
        axes.set_title(f"{place[0]}, {own.source.iloc[0]}")
    x = "k, rollouts in the baseline; oracle sign: from the mean of all rollouts"
    style.label(figure, 4, (x, *notes(rates)), "sign-flip rate (%)")
    return figure


def _panel(axes: Axes, rates: pd.DataFrame, sizes: list[int]) -> None:
    """Lines for the exact rates with their intervals, open markers for the sampled ones."""
    for (baseline, convention), dashes in DASHES.items():
        own = rates[(rates.baseline == baseline) & (rates.convention == convention)]
        look = style.CENTRES[baseline == "median"] | {"linestyle": dashes, "label": f"{baseline}, {convention}"}
        draw_rates(axes, own, sizes, DODGE[baseline], look)
    style.categories(axes, sizes)
    axes.set_ylim(bottom=0)


def notes(rates: pd.DataFrame) -> tuple[str, str]:
    """The meaning of conventions, bars and markers: lines for an axis label."""
    conventions = "strict: flips between + and \N{MINUS SIGN}; zeros: also to and from 0"
    bars = style.bars(rates[rates.how == "exact"].over)
    lines = "lines: exact" + (f" ({bars})" if bars else "")
    sampled = "; open markers: random subsamples, as in the paper" if (rates.how == "sampled").any() else ""
    return conventions, lines + sampled


def draw_rates(axes: Axes, rates: pd.DataFrame, sizes: list[int], offset: float, look: dict) -> None:
    """One baseline under one convention against k; sampled rates are drawn beside the exact ones."""
    exact, sampled = (rates[rates.how == how] for how in ("exact", "sampled"))
    style.draw_line(axes, exact, "k", sizes, offset, **look)
    face = {"markerfacecolor": "white", "markeredgecolor": look["color"], "markersize": look["markersize"]}
    x = sampled.k.map(sizes.index) + offset + BESIDE
    axes.plot(x, 100 * sampled["mean"], linestyle="none", marker=look["marker"], **face)
