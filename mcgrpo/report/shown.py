"""The cells and trainings that each figure shows. Figures draw them, and the n under a figure counts them.

There is a function for each module of `mcgrpo.report.figures` that shows data, of the same name. It is given the frames
that `mcgrpo.report.catalogue` names (a row per `Cell`, `Gain`, `CurvePoint` or `SignalPoint`). The cells of a figure
include planned cells without a measurement; if no cell has one, a ValueError says that there is nothing to show.
"""

from collections.abc import Iterable

import pandas as pd

from mcgrpo.analyse.curves import PHASES
from mcgrpo.analyse.flip_measures import FlipMeasure, parse_measure
from mcgrpo.analyse.frames import accuracies, is_among, seed_gains
from mcgrpo.report.catalogue import FIGURES
from mcgrpo.study.methods import METHODS, UNTRAINED, is_median, label, method_order
from mcgrpo.study.variants import COMPOSITE, DEFAULT, Flips, flips_of

FIRST_METHODS = [method for method, spec in METHODS.items() if spec.baseline is None or is_median(method)]
COMPOSITE_METHODS = LATENCY_METHODS = ("grpo", "mc-grpo")
FLIPPED = "grpo"
"""The method whose advantages are flipped."""
FLIP_BASELINES, FLIP_ORACLE = ("mean", "median"), "oracle-mean"
BUDGET = 4
"""The G of the paper's latency figure; a setting without it shows the nearest."""


def select(name: str, frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """What the figure of this name shows.

    Args:
        name: a key of `mcgrpo.report.catalogue.FIGURES`.
        frames: its sources.

    Raises:
        ValueError: if there is nothing to show.
    """
    return globals()[FIGURES[name].module](*frames, **FIGURES[name].options)


def gains(summary: pd.DataFrame, gains: pd.DataFrame, decoding: str) -> pd.DataFrame:
    """Accuracies of methods that are compared with a baseline, with the gain of each seed as `seed_gains`."""
    cells = accuracies(summary, "in")
    cells = cells[(cells.decoding == decoding) & cells.baseline.notna()]
    if cells.difference.isna().all():
        raise ValueError(f"nothing to show: no paired gain in {decoding} accuracy on a benchmark of role 'in'")
    return cells.assign(seed_gains=[seed_gains(gains, cell) for cell in cells.itertuples()])


def accuracy(summary: pd.DataFrame, role: str, decodings: tuple[str, ...]) -> pd.DataFrame:
    """Accuracies on benchmarks of a role, in the first of the decodings that was evaluated; without the control."""
    cells = accuracies(summary, role)
    cells = cells[cells.method.isin([UNTRAINED, *FIRST_METHODS])]
    present = cells[(cells.method != UNTRAINED) & cells["mean"].notna()]
    decoding = next((d for d in decodings if (present.decoding == d).any()), None)
    if decoding is None:
        raise ValueError(
            f"nothing to show: no {' or '.join(decodings)} accuracy of a trained method on a benchmark of role "
            f"{role!r} (variant {DEFAULT})"
        )
    return cells[cells.decoding == decoding]


def composite(summary: pd.DataFrame) -> pd.DataFrame:
    """Accuracies with the composite reward, the same with the accuracy reward, and those of the untrained models."""
    cells = accuracies(summary, "in", variant=None)
    trained = cells[cells.method.isin(COMPOSITE_METHODS) & cells.variant.isin([DEFAULT, COMPOSITE])]
    wanted = trained[(trained.variant == COMPOSITE) & trained["mean"].notna()]
    if wanted.empty:
        methods = " or ".join(COMPOSITE_METHODS)
        raise ValueError(f"nothing to show: no accuracy of {methods} under variant {COMPOSITE!r}")
    untrained = cells[(cells.method == UNTRAINED) & (cells.variant == DEFAULT)]
    beside = trained[trained.num_generations.isin(wanted.num_generations)]
    cells = pd.concat([beside, untrained])
    return cells[is_among(cells, wanted, ["setting", "benchmark"])]


def injected_flips(summary: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of the sweep, with their `rate` and `rule`, at the largest G of each setting that has flips.

    A rate of 0 is the default variant. The untrained models have no rate.
    """
    every = accuracies(summary, "in", variant=None)
    cells = every[(every.method == FLIPPED) & every["mean"].notna()]
    flips = [Flips(0.0) if variant == DEFAULT else flips_of(variant) for variant in cells.variant]
    cells = cells.assign(rate=[f and f.rate for f in flips], rule=[f and f.rule for f in flips])
    cells = cells[cells.rule.notna()]
    injected = cells[cells.variant != DEFAULT]
    if injected.empty:
        raise ValueError(f"nothing to show: no accuracy of {FLIPPED} with injected sign flips (variants flip-...)")
    largest = injected.groupby("setting").num_generations.max()
    cells = cells[cells.num_generations == cells.setting.map(largest)]
    return pd.concat([cells, every[(every.method == UNTRAINED) & (every.variant == DEFAULT)]])


def variants(summary: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of trained methods under variants that have no figure of their own."""
    cells = accuracies(summary, "in", variant=None)
    others = [v for v in cells.variant.unique() if v not in (DEFAULT, COMPOSITE) and not flips_of(v)]
    cells = cells[cells.variant.isin(others) & (cells.method != UNTRAINED)]
    if cells.change.isna().all():
        raise ValueError("nothing to show: no change of accuracy under a variant (injected flips and composite apart)")
    return cells


def flip_rates(summary: pd.DataFrame) -> pd.DataFrame:
    """The sign-flip rates, the untrained models first, with the parts of their measure as columns.

    Columns beside those of `Cell`: the fields of `mcgrpo.analyse.flip_measures.FlipMeasure` (whose baseline replaces
    the cell's), and `source`, the model in words.
    """
    rows = summary[(summary.role == "flips") & (summary.variant == DEFAULT) & summary["mean"].notna()]
    if rows.empty:
        raise ValueError("nothing to show: no sign-flip rate (role 'flips', variant default)")
    parts = pd.DataFrame([parse_measure(measure) for measure in rows.measure], rows.index, FlipMeasure._fields)
    rows = rows.drop(columns="baseline").join(parts)
    rows = rows.assign(source=[_source(row.method, row.num_generations) for row in rows.itertuples()])
    return rows.sort_values("method", key=lambda names: names.map(method_order), kind="stable")


def _source(method: str, num_generations: int) -> str:
    return label(method) if method == UNTRAINED else f"{label(method)}, G = {num_generations}"


def sign_flips(summary: pd.DataFrame) -> pd.DataFrame:
    """The rates of `flip_rates` of the first model that was measured, for two baselines and one oracle."""
    rates = flip_rates(summary)
    rates = rates[(rates.oracle == FLIP_ORACLE) & rates.baseline.isin(FLIP_BASELINES)]
    if rates.empty:
        raise ValueError(f"nothing to show: no sign-flip rate of a mean or median baseline against {FLIP_ORACLE}")
    return rates[rates.source == rates.groupby(["setting", "benchmark"]).source.transform("first")]


def rewards(curves: pd.DataFrame) -> pd.DataFrame:
    """The steps that have a reward."""
    points = curves[(curves.variant == DEFAULT) & curves.reward.notna()]
    if points.empty:
        raise ValueError(f"nothing to show: no step has a reward (variant {DEFAULT})")
    return points


def budget(curves: pd.DataFrame) -> pd.DataFrame:
    """The steps of the paper's first loss whose rollouts and accuracy are known, with the `seconds` until their end."""
    first = METHODS[FLIPPED].loss_type
    methods = [method for method, spec in METHODS.items() if spec.loss_type == first]
    points = curves[(curves.variant == DEFAULT) & curves.method.isin(methods)]
    run = ["setting", "method", "num_generations", "seed"]
    points = points.sort_values([*run, "step"])
    spent = points[list(PHASES)].sum(axis=1)  # also in steps that draw nothing
    points = points.assign(seconds=spent.groupby([points[name] for name in run]).cumsum())
    points = points[points.rollouts.notna() & points.accuracy.notna()]
    if points.empty:
        raise ValueError("nothing to show: no step of GRPO's loss has rollouts and an accuracy (variant default)")
    return points


def signal(signal_curves: pd.DataFrame) -> pd.DataFrame:
    """The computed signal at the rewards of one model, see `first_source`."""
    if signal_curves.empty:
        raise ValueError("nothing to show: no model has the many rollouts that sign flips are measured on")
    return first_source(signal_curves)


def first_source(signals: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first model that signals are computed for, an untrained one if there is one."""
    sources = list(dict.fromkeys(signals.source))
    untrained = [source for source in sources if f"/{UNTRAINED}/" in source]
    return signals[signals.source == (untrained or sources)[0]]


def latency(summary: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """The steps of both methods, with their `extra_rollouts`, in each setting at the G nearest to `BUDGET` of both."""
    points = curves[(curves.variant == DEFAULT) & curves.method.isin(LATENCY_METHODS)]
    timed = points[points[list(PHASES)].notna().any(axis=1)]
    methods = timed.groupby(["setting", "num_generations"]).method.nunique()
    chosen: dict[str, int] = {}
    for setting, budget in methods[methods == len(LATENCY_METHODS)].index:
        chosen[setting] = min(budget, chosen.get(setting, budget), key=lambda each: abs(each - BUDGET))
    if not chosen:
        names = " and ".join(LATENCY_METHODS)
        raise ValueError(f"nothing to show: no setting has seconds per step of {names} at one G")
    cell = ["setting", "method", "num_generations", "variant"]
    extra = summary.groupby(cell).extra_rollouts.first()
    return points[points.num_generations == points.setting.map(chosen)].join(extra, on=cell)
