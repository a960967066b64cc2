"""Sign flips: an example, and their rate for each baseline over k rollouts."""

import string

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of
from mcgrpo.report.figures.flip_example import draw_example

DASHES = {("mean", "zeros"): "--", ("median", "zeros"): "-", ("mean", "strict"): ":", ("median", "strict"): "-."}
DODGE = {"mean": -0.07, "median": 0.07}


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """The example, and for each setting the rate against k, of the mean and the median under both conventions.

    Args:
        summary: a row per `Cell`; the rates are those of role "flips", against the oracle's mean, of the untrained
            model (or of the first measured method, if it was not measured).
        save: is given the finished figure.

    Raises:
        ValueError: if there is no such rate.
    """
    rates = shown.sign_flips(summary)
    blocks = blocks_of(rates)
    with style.flow(1 + len(blocks), 2.05, columns=2, sharey=False) as (figure, grid):
        draw_example(grid[0])
        for axes in grid[2:]:
            axes.sharey(grid[1])
        for place, letter, axes in zip(blocks, string.ascii_lowercase[1:], grid[1:], strict=False):
            own = block(rates, *place)
            _panel(axes, own, sorted(rates.k.unique()))
            axes.set_title(f"({letter}) {place[0]}, {own.source.iloc[0]}")
            axes.set_ylabel("sign-flip rate (%)")
        x = "k, rollouts in the baseline; oracle sign: from the mean of all rollouts"
        style.label(figure, (x, *notes(rates)))
        style.legend(figure, 4)
        save(figure)


def _panel(axes: Axes, rates: pd.DataFrame, sizes: list[int]) -> None:
    """Lines for the exact rates with their intervals, open markers for the sampled ones."""
    for (baseline, convention), dashes in DASHES.items():
        own = rates[(rates.baseline == baseline) & (rates.convention == convention)]
        draw_rates(
            axes,
            own,
            sizes,
            DODGE[baseline],
            look=_look(baseline) | {"linestyle": dashes},
            name=f"{baseline}, {convention}",
        )
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
    axes: Axes, rates: pd.DataFrame, sizes: list[int], offset: float, look: dict, name: str, beside: float = 0.13
) -> None:
    """One baseline under one convention against k; sampled rates are drawn `beside` the exact ones."""
    places = np.arange(len(sizes)) + offset
    exact, sampled = (rates[rates.how == how].set_index("k").reindex(sizes) for how in ("exact", "sampled"))
    style.draw_line(axes, places, exact, **look | {"label": name})
    if sampled["mean"].notna().any():
        face = {"markerfacecolor": "white", "markeredgecolor": look["color"], "markersize": look["markersize"]}
        axes.plot(places + beside, 100 * sampled["mean"], linestyle="none", marker=look["marker"], **face)


def _look(baseline: str) -> dict:
    return style.CENTRES[baseline == "median"]
