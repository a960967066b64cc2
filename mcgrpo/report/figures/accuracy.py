"""Accuracy against G: a row of panels for each setting and benchmark, a column for each loss."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.frames import accuracies, is_among
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median
from mcgrpo.study.variants import DEFAULT

SIX = [method for method, spec in METHODS.items() if spec.baseline is None or is_median(method)]
"""The paper's methods; the control has a table of its own."""


def by_loss(summary: pd.DataFrame, role: str, decodings: tuple[str, ...]) -> Figure:
    """A column for each loss, on benchmarks of a role, in the first of the decodings that was evaluated."""
    cells = accuracies(summary, role)
    what = f"{' or '.join(decodings)} accuracy of a trained method on a benchmark of role {role!r} (variant {DEFAULT})"
    present = facets.shown(cells[cells.method.isin(SIX) & cells["mean"].notna() & cells.decoding.isin(decodings)], what)
    decoding = min(present.decoding, key=decodings.index)
    cells = cells[cells.decoding == decoding]
    trained, untrained = facets.in_order(cells[cells.method.isin(SIX)]), cells[cells.method == UNTRAINED]
    trained = trained.assign(column=facets.loss_of(trained.method))
    trained = trained[trained.groupby(["row", "column"])["mean"].transform("count") > 0]
    budgets = sorted(trained[trained["mean"].notna()].num_generations.unique())

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for method, own in rows[rows.num_generations.isin(budgets)].groupby("method", sort=False):
            own = own.sort_values("num_generations")
            x = own.num_generations.map(budgets.index) + facets.DODGE[is_median(method)]
            facets.line(axes, x, own, **facets.look_of(method))
        facets.categories(axes, budgets)
        for mean in untrained[is_among(untrained, rows, ["setting", "benchmark"])]["mean"].dropna().unique():
            text = f"untrained {wording.number(mean, 'percent')}"
            axes.text(0.98, 0.03, text, transform=axes.transAxes, ha="right", color="0.35", fontsize=6.5)

    below = (facets.ROLLOUTS, facets.bars(trained), wording.sizes(trained))
    return facets.draw(trained, panel, 1.75, below, f"accuracy (%), {', '.join(sorted(cells.measure.unique()))}")
