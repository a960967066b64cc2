"""Sign flips: how often they happen, accuracies when they are injected on purpose; and the computed signal."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcgrpo.analyse.frames import accuracies
from mcgrpo.report import wording
from mcgrpo.report.figures import facets
from mcgrpo.report.tables import flip_rates
from mcgrpo.study.methods import METHODS, UNTRAINED, label, method_order
from mcgrpo.study.variants import DEFAULT, Flips, flips_of

DASHES = {("mean", "zeros"): "--", ("median", "zeros"): "-", ("mean", "strict"): ":", ("median", "strict"): "-."}
ORACLE, FLIPPED = "oracle-mean", "grpo"
"""Whose sign is the true one; and the method whose advantages are flipped."""
RULES = {
    "bernoulli": {"label": "each advantage flips with probability ρ", "linestyle": "-", "marker": "o"},
    "exact": {"label": "a share ρ of each group flips", "linestyle": "none", "marker": "^"},
}


def sign_flips(summary: pd.DataFrame) -> Figure:
    """The rate against k of the mean and the median of the first model that was measured."""
    rates = flip_rates.select(summary[(summary.variant == DEFAULT) & summary["mean"].notna()])
    rates = rates[(rates.oracle == ORACLE) & rates.centre.isin(["mean", "median"])]
    rates = facets.shown(rates, f"sign-flip rate of a mean or median baseline against {ORACLE}")
    rates = rates.sort_values("method", key=lambda names: names.map(method_order), kind="stable")
    sizes = rates.num_generations.map(lambda size: f", G={size}" if size else "")
    models = rates.setting + ", " + rates.method.map(label) + sizes
    rates = rates.assign(row=rates.benchmark, column=models)
    rates = rates[models == models.groupby([rates.setting, rates.benchmark]).transform("first")]
    sizes = sorted(rates.k.unique())

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for (baseline, convention), dashes in DASHES.items():
            own = rows[(rows.centre == baseline) & (rows.convention == convention)].sort_values("k")
            look = facets.CENTRES[baseline == "median"]
            look = look | {"linestyle": dashes, "label": f"{baseline}, {convention}"}
            facets.line(axes, own.k.map(sizes.index) + facets.DODGE[baseline == "median"], own, **look)
        facets.categories(axes, sizes)
        axes.axhline(0, color="0.25", linewidth=0.9)

    conventions = "strict: flips between + and \N{MINUS SIGN}; zeros: also to and from 0"
    x = "k, rollouts in the baseline; oracle sign: from the mean of all rollouts"
    below = (x, conventions, facets.bars(rates), wording.sizes(rates))
    return facets.draw(rates, panel, 2.05, below, "sign-flip rate (%)")


def injected(summary: pd.DataFrame) -> Figure:
    """Accuracy of GRPO against ρ at the largest G of each setting that has flips; 0 is the default variant."""
    cells = accuracies(summary, "in", variant=None)
    cells = cells[(cells.method == FLIPPED) & cells["mean"].notna()]
    flips = [Flips(0.0) if variant == DEFAULT else flips_of(variant) for variant in cells.variant]
    cells = cells.assign(rate=[each and each.rate for each in flips], rule=[each and each.rule for each in flips])
    flipped = cells[cells.rule.notna() & (cells.variant != DEFAULT)]
    flipped = facets.shown(flipped, f"accuracy of {FLIPPED} with injected sign flips (variants flip-...)")
    largest = cells.setting.map(flipped.groupby("setting").num_generations.max())
    cells = cells[cells.rule.notna() & (cells.num_generations == largest)].sort_values("rate", kind="stable")
    cells = facets.in_order(cells).sort_values("decoding", kind="stable")
    cells = cells.assign(row=cells.row + ", G = " + cells.num_generations.astype(str), column=cells.decoding)

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for rule, own in rows.groupby("rule", sort=False):
            look = {"color": facets.PALETTE[0], "markersize": 4.5} | RULES[rule]
            facets.line(axes, 100 * own.rate.astype(float), own, **look)

    below = (f"ρ, injected sign flips (%), into {label(FLIPPED)}", facets.bars(cells), wording.sizes(cells))
    return facets.draw(cells, panel, 1.75, below, "accuracy (%)")


def signal(signal_curves: pd.DataFrame) -> Figure:
    """A column of panels for each G: above the squared signal to noise of one rollout, below the implicit objective.

    They are of the first model that signals are computed for, an untrained one if there is one. Methods with the same
    estimator share a line. The objective is over its value at the largest rate, since a factor does not matter.
    """
    points = facets.shown(signal_curves, "model has the many rollouts that sign flips are measured on")
    untrained = points.source.str.contains(f"/{UNTRAINED}/")
    source = points.source[untrained | ~untrained.any()].iloc[0]
    points = facets.in_order(points[points.source == source]).sort_values(["num_generations", "order", "rate"])
    points = points.assign(estimator=points.method.map(lambda method: METHODS[method].estimator))
    names = points.groupby("estimator").method.unique().map(lambda all: ", ".join(METHODS[each].label for each in all))
    points = points.drop_duplicates(["estimator", "num_generations", "rate"])
    share = points.objective / points.groupby(["estimator", "num_generations"]).objective.transform("last")
    columns = points.num_generations.map("G = {}".format)
    rows = {"signal per rollout": points.per_rollout, "objective, share at 0.99": share}
    parts = [points.assign(row=name, column=columns, y=values) for name, values in rows.items()]

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for estimator, own in rows.groupby("estimator", sort=False):
            method = own.method.iloc[0]
            colour, dashes = facets.LOSS_COLOURS[facets.LOSSES[method]], facets.LOOKS[method]["linestyle"]
            axes.plot(100 * own.rate, own.y, color=colour, linestyle=dashes, linewidth=1.2, label=names[estimator])

    below = ("success rate of a prompt (%)", f"computed from the rewards of {source}")
    return facets.draw(pd.concat(parts), panel, 1.75, below)
