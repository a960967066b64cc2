"""Accuracy against the rate of injected sign flips."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mcgrpo.analyse.frames import DECODINGS
from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.variants import DEFAULT

LOOKS = {
    "greedy": {"color": style.PALETTE[0], "marker": "o", "markersize": 4.5, "linestyle": "-"},
    "sampled": {"color": style.PALETTE[1], "marker": "s", "markersize": 4, "linestyle": "--"},
}


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """Accuracy of GRPO against rho, at the largest G with flips: rows of settings and benchmarks, columns of decodings.

    A line connects the rates at which each advantage flips with probability rho (0 is the default variant); single
    markers are rates at which exactly that share of each group flips.

    Args:
        summary: a row per `Cell`.
        save: is given the finished figure.

    Raises:
        ValueError: if there is no accuracy with injected flips.
    """
    rows, cells = shown.injected_flips(summary), shown.all_accuracies(summary)
    blocks = blocks_of(rows)
    untrained = cells[(cells.method == UNTRAINED) & (cells.variant == DEFAULT)]
    decodings = [decoding for decoding in DECODINGS if (rows.decoding == decoding).any()]
    with style.panels(len(blocks), len(decodings), 1.75, sharex=True, sharey=False) as (figure, grid):
        for place, line in zip(blocks, grid, strict=True):
            own = block(rows, *place)
            for decoding, axes in zip(decodings, line, strict=True):
                _lines(axes, own[own.decoding == decoding], LOOKS[decoding])
                style.draw_untrained(axes, block(untrained[untrained.decoding == decoding], *place))
                style.percent_axis(axes)
                axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            line[0].set_ylabel(f"{place[0]}\n{place[1]}, G = {own.num_generations.iloc[0]}")
        triangles = "open triangles: a share ρ of each group flips" if (rows.rule == "exact").any() else ""
        lines = "lines: each advantage flips with probability ρ"
        style.label(figure, ("ρ, rate of injected sign flips", lines, triangles, style.bars(rows.over)), "accuracy (%)")
        style.legend(figure, 3)
        save(figure)


def _lines(axes: Axes, rows: pd.DataFrame, look: dict) -> None:
    if rows.empty:
        return
    name = measure_of(rows, rows.decoding.iloc[0])
    line, exact = (rows[rows.rule == rule].sort_values("rate") for rule in ("bernoulli", "exact"))
    style.draw_line(axes, line.rate.to_numpy(float), line, **look, label=name)
    apart = look | {"linestyle": "none", "marker": "^", "markersize": 5, "markerfacecolor": "white"}
    edge = {"markeredgecolor": look["color"], "markeredgewidth": 0.9}
    style.draw_line(axes, exact.rate.to_numpy(float) + 0.012, exact, **apart, **edge)
