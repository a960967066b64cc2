"""Accuracy against G with the composite reward and with the accuracy reward."""

import numpy as np
import pandas as pd

from mcgrpo.analyse.frames import DECODINGS, is_median
from mcgrpo.report import shown
from mcgrpo.report.figures import style
from mcgrpo.report.figures.accuracy import DODGE
from mcgrpo.report.figures.cells import block, blocks_of, measure_of
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.variants import COMPOSITE, DEFAULT

TITLES = {DEFAULT: "accuracy reward", COMPOSITE: "composite reward"}


def draw(summary: pd.DataFrame, save: style.Save) -> None:
    """GRPO and MC-GRPO: a column for each reward, a row for each setting, benchmark and decoding.

    Args:
        summary: a row per `Cell`.
        save: is given the finished figure.

    Raises:
        ValueError: if neither method has an accuracy under the variant `composite`.
    """
    cells = shown.composite(summary)
    trained = cells[(cells.method != UNTRAINED) & cells["mean"].notna()]
    with_composite = trained[trained.variant == COMPOSITE]
    budgets = sorted(with_composite.num_generations.unique())
    rows = [
        (place, decoding)
        for place in blocks_of(with_composite)
        for decoding in DECODINGS
        if (block(with_composite, *place).decoding == decoding).any()
    ]
    with style.panels(len(rows), len(TITLES), 1.6, width=style.NARROW) as (figure, grid):
        for axes, title in zip(grid[0], TITLES.values(), strict=True):
            axes.set_title(title)
        for (place, decoding), line in zip(rows, grid, strict=True):
            own = block(cells[cells.decoding == decoding], *place)
            for variant, axes in zip(TITLES, line, strict=True):
                for method in shown.COMPOSITE_METHODS:
                    of = own[(own.method == method) & (own.variant == variant)]
                    of = of.set_index("num_generations").reindex(budgets)
                    offset = DODGE if is_median(method) else -DODGE
                    look = style.CENTRES[is_median(method)] | {"label": METHODS[method].label}
                    style.draw_line(axes, np.arange(len(budgets)) + offset, of, **look)
                style.categories(axes, budgets)
            for axes in line:
                style.draw_untrained(axes, own[(own.method == UNTRAINED) & (own.variant == DEFAULT)])
                style.percent_axis(axes)
            line[0].set_ylabel("\n".join((*place, measure_of(own, decoding))))
        x = ("G, rollouts in the update", style.bars(trained.over))
        style.label(figure, x, "accuracy (%)")
        style.legend(figure, 3)
        save(figure)
