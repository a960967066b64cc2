"""pass@k against k, and accuracy against the learning rate, of the methods of GRPO's loss."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.frames import accuracies
from mcgrpo.records import CELL, Plan
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import learning_rate
from mcgrpo.study.primary import CONTROL, MEAN, METHOD
from mcgrpo.study.variants import DEFAULT

SHOWN = (MEAN, CONTROL, METHOD)


def pass_at_k(summary: pd.DataFrame) -> Figure:
    """A row for each setting and benchmark in distribution, a column for each G; k = 1 is the sampled accuracy."""
    rows = summary[(summary.role == "in") & (summary.variant == DEFAULT) & summary["mean"].notna()]
    sampled = rows[(rows.decoding == "sampled")].assign(k=1)
    more = rows[rows.measure.str.startswith("pass@")]
    cells = pd.concat([sampled, more.assign(k=more.measure.str.removeprefix("pass@").astype(int))])
    trained = cells[cells.method.isin(SHOWN)]
    trained = facets.in_order(facets.shown(trained, "pass@k of a trained method (role 'in', variant default)"))
    trained = trained.assign(column="G = " + trained.num_generations.astype(str)).sort_values(
        "num_generations", kind="stable"
    )
    ks = sorted(trained.k.unique())
    untrained = cells[cells.method == UNTRAINED]

    def panel(axes: Axes, own: pd.DataFrame) -> None:
        place = own[["setting", "benchmark"]].iloc[0]
        before = untrained[(untrained[["setting", "benchmark"]] == place).all(axis=1)].sort_values("k")
        facets.line(axes, before.k.map(ks.index), before, **UNTRAINED_LOOK)
        for method, each in own.groupby("method", sort=False):
            each = each.sort_values("k")
            facets.line(axes, each.k.map(ks.index), each, **facets.LOOKS[method])
        facets.categories(axes, ks)

    below = ("k, samples of a problem", facets.bars(trained), wording.sizes(trained))
    return facets.draw(trained, panel, 1.9, below, "problems solved by any of k samples (%)")


UNTRAINED_LOOK = {"label": "untrained", "color": "0.6", "marker": "x", "markersize": 4, "linestyle": "-."}


def rates(summary: pd.DataFrame, plan: Plan) -> Figure:
    """Accuracy under the variants that a selection chooses from, against their learning rates.

    A row for each setting, benchmark and decoding, a column for each G.
    """
    names = {name for variants in plan.selections.values() for name in variants}
    runs = [{**{name: getattr(run, name) for name in CELL}, "rate": learning_rate(run)} for run in plan.runs]
    rate = pd.DataFrame(runs).drop_duplicates([*CELL])
    cells = accuracies(summary, "in", variant=None)
    cells = cells[cells.variant.isin(names) & cells["mean"].notna() & cells.method.isin(SHOWN)]
    cells = cells.merge(rate, on=[*CELL], how="left")
    swept = (
        cells.groupby(["setting", "benchmark", "decoding", "num_generations", "method"]).rate.transform("nunique") > 1
    )
    cells = facets.in_order(facets.shown(cells[swept], "accuracy at several learning rates"))
    cells = cells.assign(
        row=cells.row + "\n" + cells.decoding, column="G = " + cells.num_generations.astype(str)
    ).sort_values(["setting", "benchmark", "decoding", "num_generations"], kind="stable")
    ticks = sorted(cells.rate.unique())

    def panel(axes: Axes, own: pd.DataFrame) -> None:
        for method, each in own.groupby("method", sort=False):
            each = each.sort_values("rate")
            facets.line(axes, each.rate.map(ticks.index), each, **facets.LOOKS[method])
        facets.categories(axes, [f"{rate:g}" for rate in ticks])

    below = ("learning rate", facets.bars(cells), wording.sizes(cells))
    return facets.draw(cells, panel, 1.9, below, "accuracy (%)")
