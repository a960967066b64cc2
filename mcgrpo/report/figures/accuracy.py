"""Accuracies: against G, their gains over the mean-centred method, and their change by each variant."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.frames import accuracies, is_among, seed_gains
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median, label
from mcgrpo.study.variants import DEFAULT, flips_of

SIX = [method for method, spec in METHODS.items() if spec.baseline is None or is_median(method)]
"""The paper's methods; the control has a table of its own."""
APART, BESIDE = 0.3, 0.1
"""Between the methods of one G, and from a mean to its seeds, of the 1 between two G."""
SEEDS = {"linestyle": "none", "marker": "o", "markersize": 2.6, "alpha": 0.7, "label": "single seeds"}
PAPER = {"linestyle": "none", "marker": "x", "markersize": 4.5, "color": "black", "label": "the paper's gain"}


def by_loss(summary: pd.DataFrame, role: str, decodings: tuple[str, ...]) -> Figure:
    """A column for each loss, on benchmarks of a role, in the first of the decodings that was evaluated."""
    cells = accuracies(summary, role)
    what = f"{' or '.join(decodings)} accuracy of a trained method on a benchmark of role {role!r} (variant {DEFAULT})"
    present = facets.shown(cells[cells.method.isin(SIX) & cells["mean"].notna() & cells.decoding.isin(decodings)], what)
    decoding = min(present.decoding, key=decodings.index)
    cells = cells[cells.decoding == decoding]
    trained, untrained = facets.in_order(cells[cells.method.isin(SIX)]), cells[cells.method == UNTRAINED]
    trained = trained.assign(column=trained.method.map(facets.LOSSES))
    trained = trained[trained.groupby(["row", "column"])["mean"].transform("count") > 0]
    budgets = sorted(trained[trained["mean"].notna()].num_generations.unique())

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for method, own in rows[rows.num_generations.isin(budgets)].groupby("method", sort=False):
            own = own.sort_values("num_generations")
            x = own.num_generations.map(budgets.index) + facets.DODGE[is_median(method)]
            facets.line(axes, x, own, **facets.LOOKS[method])
        facets.categories(axes, budgets)
        for mean in untrained[is_among(untrained, rows, ["setting", "benchmark"])]["mean"].dropna().unique():
            text = f"untrained {wording.number(mean, 'percent')}"
            axes.text(0.98, 0.03, text, transform=axes.transAxes, ha="right", color="0.35", fontsize=6.5)

    below = (facets.ROLLOUTS, facets.bars(trained), wording.sizes(trained))
    return facets.draw(trained, panel, 1.75, below, f"accuracy (%), {', '.join(sorted(cells.measure.unique()))}")


def gains(summary: pd.DataFrame, decoding: str) -> Figure:
    """Gains over the mean-centred method at the same G: a row for each setting and benchmark, a column for each loss.

    A band is the equivalence margin; crosses are the gains that the paper prints.
    """
    cells = accuracies(summary, "in")
    cells = cells[(cells.decoding == decoding) & cells.baseline.notna() & cells.difference.notna()]
    cells = facets.shown(cells, f"paired gain in {decoding} accuracy on a benchmark of role 'in'")
    cells = facets.in_order(cells.assign(seed_gains=[seed_gains(cell) for cell in cells.itertuples()]))
    cells = cells.assign(column="over " + cells.method.map(facets.LOSSES))
    budgets = sorted(cells.num_generations.unique())

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        facets.categories(axes, budgets)
        methods = list(dict.fromkeys(rows.method))
        for number, method in enumerate(methods):
            own = rows[rows.method == method]
            _method(axes, own.num_generations.map(budgets.index) + APART * (number - (len(methods) - 1) / 2), own)
        axes.axhline(0, color="0.25", linewidth=0.9, zorder=1)
        margin = rows.equivalence_margin.max()
        if pd.notna(margin):
            name = f"equivalent (±{wording.count_points(margin)})"
            axes.axhspan(-100 * margin, 100 * margin, color="0.88", linewidth=0, zorder=0, label=name)

    below = (facets.ROLLOUTS, facets.bars(cells, "difference"), wording.sizes(cells))
    measures = ", ".join(sorted(cells.measure.unique()))
    return facets.draw(cells, panel, 1.75, below, f"gain in accuracy (points), {measures}")


def _method(axes: Axes, x: pd.Series, rows: pd.DataFrame) -> None:
    """The mean gains of one method, beside each its seeds and the gain that the paper prints."""
    look = facets.LOOKS[rows.method.iloc[0]]
    facets.line(axes, x, rows, "difference", **look | {"linestyle": "none", "zorder": 3})
    seeds = rows.assign(x=x + BESIDE).explode("seed_gains")
    axes.plot(seeds.x, 100 * seeds.seed_gains.astype(float), color=look["color"], **SEEDS)
    printed = rows.published_difference.notna()
    if printed.any():
        axes.plot(x[printed] - BESIDE, 100 * rows.published_difference[printed], **PAPER)


def variants(summary: pd.DataFrame) -> Figure:
    """Dots with intervals: a row of panels for each setting and benchmark, a column per decoding.

    Injected flips have a figure of their own.
    """
    cells = accuracies(summary, "in", variant=None)
    own = (cells.variant == DEFAULT) | cells.variant.map(flips_of).notna()
    cells = cells[~own & (cells.method != UNTRAINED) & cells.change.notna()]
    cells = facets.shown(cells, "change of accuracy under a variant (injected flips apart)")
    cells = facets.in_order(cells).sort_values(["setting", "benchmark", "variant", "decoding"], kind="stable")
    methods = cells.method.map(label) + ", G = " + cells.num_generations.astype(str)
    cells = cells.assign(column=cells.decoding, name=cells.variant + ": " + methods)
    names = {row: list(dict.fromkeys(own["name"])) for row, own in cells.groupby("row")}

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        dots = names[rows.row.iloc[0]]
        for (_, method), own in rows.groupby(["variant", "method"]):
            look = facets.BARS | facets.LOOKS[method] | {"linestyle": "none"}
            y = own["name"].map(dots.index)
            axes.errorbar(100 * own.change, y, xerr=facets.errors(own, "change"), **look)
        axes.set_yticks(range(len(dots)), dots)
        axes.set_ylim(len(dots) - 0.4, -0.6)
        axes.axvline(0, color="0.25", linewidth=0.9)
        axes.grid(visible=False, axis="y")

    height = 0.4 + 0.15 * max(map(len, names.values()))
    x = "change of accuracy (points), to the same method and G under the default"
    below = (x, facets.bars(cells, "change"), wording.sizes(cells))
    return facets.draw(cells, panel, height, below, sharex=True)
