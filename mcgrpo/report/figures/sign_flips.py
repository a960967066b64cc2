"""Sign flips: an example, and their rate for each baseline over k rollouts."""

import string

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of
from mcgrpo.report.figures.flip_example import draw_example

DASHES = {("mean", "zeros"): "--", ("median", "zeros"): "-", ("mean", "strict"): ":", ("median", "strict"): "-."}
DODGE = {"mean": -0.07, "median": 0.07}


def draw(rates: pd.DataFrame) -> Figure:
    """The example, and for each setting the rate against k, of the mean and the median under both conventions."""
    blocks = blocks_of(rates)
    figure, grid = style.panels(-(-(1 + len(blocks)) // 2), 2, 2.05, sharey=False)
    example, *panels = grid.flat
    for axes in panels[len(blocks) :]:
        axes.remove()
    draw_example(example)
    for axes in panels[1 : len(blocks)]:
        axes.sharey(panels[0])
    for place, letter, axes in zip(blocks, string.ascii_lowercase[1:], panels, strict=False):
        own = block(rates, *place)
        _panel(axes, own, sorted(rates.k.unique()))
        axes.set_title(f"({letter}) {place[0]}, {own.source.iloc[0]}")
        axes.set_ylabel("sign-flip rate (%)")
    x = "k, rollouts in the baseline; oracle sign: from the mean of all rollouts"
    style.label(figure, 4, (x, *notes(rates)))
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


def draw_rates(
    axes: Axes, rates: pd.DataFrame, sizes: list[int], offset: float, look: dict, beside: float = 0.13
) -> None:
    """One baseline under one convention against k; sampled rates are drawn `beside` the exact ones."""
    exact, sampled = (rates[rates.how == how] for how in ("exact", "sampled"))
    style.draw_line(axes, exact, "k", sizes, offset, **look)
    face = {"markerfacecolor": "white", "markeredgecolor": look["color"], "markersize": look["markersize"]}
    x = sampled.k.map(sizes.index) + offset + beside
    axes.plot(x, 100 * sampled["mean"], linestyle="none", marker=look["marker"], **face)
