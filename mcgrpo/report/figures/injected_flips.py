"""Accuracy against the rate of injected sign flips."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mcgrpo.analyse.frames import DECODINGS
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.study.methods import UNTRAINED

LOOKS = {
    "greedy": {"color": style.PALETTE[0], "marker": "o", "markersize": 4.5, "linestyle": "-"},
    "sampled": {"color": style.PALETTE[1], "marker": "s", "markersize": 4, "linestyle": "--"},
}


def draw(cells: pd.DataFrame) -> Figure:
    """Accuracy of GRPO against rho: rows of settings and benchmarks, columns of decodings.

    A line connects the rates at which each advantage flips with probability rho (0 is the default variant); single
    markers are rates at which exactly that share of each group flips.
    """
    trained, untrained = cells[cells.method != UNTRAINED], cells[cells.method == UNTRAINED]
    blocks = blocks_of(trained)
    decodings = [decoding for decoding in DECODINGS if (trained.decoding == decoding).any()]
    figure, grid = style.panels(len(blocks), len(decodings), 1.75, sharex=True, sharey=False)
    for place, line in zip(blocks, grid, strict=True):
        own = block(trained, *place)
        for decoding, axes in zip(decodings, line, strict=True):
            _lines(axes, own[own.decoding == decoding], LOOKS[decoding])
            style.accuracy_axis(axes, block(untrained[untrained.decoding == decoding], *place))
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        line[0].set_ylabel(f"{place[0]}\n{place[1]}, G = {own.num_generations.iloc[0]}")
    triangles = "open triangles: a share ρ of each group flips" if (trained.rule == "exact").any() else ""
    lines = "lines: each advantage flips with probability ρ"
    x = ("ρ, rate of injected sign flips", lines, triangles, style.bars(trained.over))
    style.label(figure, 3, x, "accuracy (%)")
    return figure


def _lines(axes: Axes, rows: pd.DataFrame, look: dict) -> None:
    if rows.empty:
        return
    line, exact = (rows[rows.rule == rule].sort_values("rate") for rule in ("bernoulli", "exact"))
    style.draw_means(axes, line.rate.to_numpy(float), line, **look, label=measure_of(rows))
    apart = look | {"linestyle": "none", "marker": "^", "markersize": 5, "markerfacecolor": "white"}
    edge = {"markeredgecolor": look["color"], "markeredgewidth": 0.9}
    style.draw_means(axes, exact.rate.to_numpy(float) + 0.012, exact, **apart | edge)
