"""Accuracy against G with the composite reward and with the accuracy reward."""

import pandas as pd
from matplotlib.figure import Figure

from mcgrpo.analyse.frames import DECODINGS
from mcgrpo.report.figures import style
from mcgrpo.report.figures.accuracy import DODGE
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.report.shown import COMPOSITE_METHODS
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median
from mcgrpo.study.variants import COMPOSITE, DEFAULT

TITLES = {DEFAULT: "accuracy reward", COMPOSITE: "composite reward"}


def draw(cells: pd.DataFrame) -> Figure:
    """GRPO and MC-GRPO: a column for each reward, a row for each setting, benchmark and decoding."""
    trained = cells[(cells.method != UNTRAINED) & cells["mean"].notna()]
    with_composite = trained[trained.variant == COMPOSITE]
    budgets = sorted(with_composite.num_generations.unique())
    rows = [
        block(cells[cells.decoding == decoding], *place)
        for place in blocks_of(with_composite)
        for decoding in DECODINGS
        if (block(with_composite, *place).decoding == decoding).any()
    ]
    names = ["\n".join((*blocks_of(own)[0], measure_of(own))) for own in rows]
    figure, grid = style.named_panels(names, list(TITLES.values()), 1.6, width=style.NARROW)
    for own, line in zip(rows, grid, strict=True):
        for variant, axes in zip(TITLES, line, strict=True):
            for method in COMPOSITE_METHODS:
                drawn, look = own[(own.method == method) & (own.variant == variant)], style.look_of(method)
                look = look | {"label": METHODS[method].label}
                style.draw_line(axes, drawn, "num_generations", budgets, DODGE[is_median(method)], **look)
            style.categories(axes, budgets)
        for axes in line:
            style.accuracy_axis(axes, own[own.method == UNTRAINED])
    style.label(figure, 3, (style.ROLLOUTS, style.bars(trained.over)), "accuracy (%)")
    return figure
