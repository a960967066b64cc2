"""Tables about trainings beside their accuracy: rivals at as many rollouts, stability, and times."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import is_among, trained_accuracies
from mcgrpo.analyse.summarise import COLLAPSE
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import by_variant, ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import METHODS, label, method_order
from mcgrpo.study.variants import DEFAULT, flips_of, is_rival, rival_of

RIVALS = (
    "Rivals: GRPO with another estimator or batch (the variants rival-...) beside the study's methods, in {decoding} "
    "accuracy. Rollouts: drawn in a whole training, extra ones among them. Accuracy in percent{intervals}; {sizes}. "
    "Gains: paired differences in points to GRPO at the same G, and to GRPO at the G at which a training draws as "
    "many rollouts. "
)
STABILITY = (
    f"Stability. Collapsed: seeds whose {{decoding}} accuracy is more than {100 * COLLAPSE:g} points below the median "
    "seed of the mean-centred method at the same G, under the same variant or else the default. Effective rows: how "
    "many rows carry the update, (sum |A|)² / sum A² as a share of its rows. Gradient norm: before clipping, mean over "
    "steps and seeds. Steps clipped: share of optimizer steps whose gradient is longer than max_grad_norm. Ratio "
    "clipped: share of tokens whose ratio of probabilities is outside the clip range. None of these numbers has an "
    "interval; that of the accuracy is in the tables of accuracy. Of {sizes}."
)
TIMINGS = (
    "Training time: wall-clock seconds of a training job, mean over its seeds, on the machine of this study, and their "
    "ratio to those of its mean-centred baseline at the same G; none of these has an interval."
)
PLACE = ["setting", "benchmark", "num_generations"]
OF_TRAINING = ["frac_effective", "grad_norm", "frac_grad_clipped", "clip_ratio"]


def rivals(summary: pd.DataFrame) -> Table | None:
    """A block for each G; None if the study has no rival."""
    cells = _with_rivals(summary)
    if cells.empty:
        return None
    parts = {"decoding": cells.decoding.iloc[0], "intervals": wording.intervals(cells), "sizes": wording.sizes(cells)}
    caption = f"{RIVALS.format(**parts)}{wording.about_verdicts(cells.equivalence_margin.max())} {wording.FAMILIES}"
    return Table("rivals", caption, pd.DataFrame([_rival(row) for row in cells.itertuples()]), 3, cells)


def _with_rivals(summary: pd.DataFrame) -> pd.DataFrame:
    """The rivals, with the default cells of GRPO's loss at the same G and at the G of as many rollouts.

    Sampled accuracies, or greedy ones if nothing is sampled; with the `rollouts` of a training as a column.
    """
    cells = trained_accuracies(summary)
    rivals = cells[cells.variant.map(is_rival).astype(bool)]
    of_loss = cells.method.map(lambda method: METHODS[method].loss_type == METHODS["grpo"].loss_type)
    beside = cells[(cells.variant == DEFAULT) & of_loss.astype(bool)]
    equal = pd.concat([rivals, beside]).dropna(subset="same_rollouts_generations")
    equal = equal[equal.setting.isin(rivals.setting)]
    of_as_many = equal[PLACE].assign(num_generations=equal.same_rollouts_generations.astype("int64"))
    beside = beside[is_among(beside, pd.concat([rivals[PLACE], equal[PLACE], of_as_many]), PLACE)]
    trained = summary[(summary.role == "train") & (summary.measure == "rollouts")]
    shown = pd.concat([beside, rivals]).join(trained.set_index([*CELL])["mean"].rename("rollouts"), on=[*CELL])
    other, method = shown.variant != DEFAULT, shown.method.map(method_order)
    return ordered(shown, **{name: shown[name] for name in PLACE}, other=other, method=method, variant=shown.variant)


def _rival(row: Any) -> dict[str, Any]:
    paired = "difference" if row.variant == DEFAULT else "change"
    compared, equal = row.variant != DEFAULT or pd.notna(row.baseline), row.same_rollouts_generations
    return {
        "Setting": row.setting,
        "Benchmark": row.benchmark,
        "G": str(row.num_generations),
        "Method": label(row.method) if row.variant == DEFAULT else rival_of(row.variant),
        "Rollouts": wording.MISSING if pd.isna(row.rollouts) else f"{row.rollouts:.0f}",
        f"{row.decoding.capitalize()} (%)": wording.printed(row.mean, row.low, row.high, "percent"),
        "Gain at the same G": wording.gain(row, paired) if compared else "",
        "Gain at as many rollouts": wording.gain(row, "same_rollouts", f"G={equal}") if pd.notna(equal) else "",
        "Seeds": wording.seeds(row.seeds, row.planned),
    }


def stability(summary: pd.DataFrame) -> Table | None:
    """Every trained cell but those with injected flips, a block for each variant and G; the default variant first.

    Sampled accuracies, or greedy ones if nothing is sampled.
    """
    cells = trained_accuracies(summary)
    cells = cells[cells.variant.map(flips_of).isna()]
    if cells.empty:
        return None
    trained = summary[(summary.role == "train") & summary.measure.isin(OF_TRAINING)]
    wide = trained.pivot_table(index=[*CELL], columns="measure", values="mean").reindex(columns=OF_TRAINING)
    cells = by_variant(cells.join(wide, on=[*CELL]))
    caption = STABILITY.format(decoding=cells.decoding.iloc[0], sizes=wording.sizes(cells))
    return Table("stability", caption, pd.DataFrame([_stable(row) for row in cells.itertuples()]), 4, cells)


def _stable(row: Any) -> dict[str, Any]:
    known = pd.notna(row.collapsed)
    return {
        "Setting": row.setting,
        "Benchmark": row.benchmark,
        "Variant": row.variant,
        "G": str(row.num_generations),
        "Method": label(row.method),
        f"{row.decoding.capitalize()} (%)": wording.number(row.mean, "percent"),
        "Worst seed (%)": wording.number(row.worst, "percent"),
        "Collapsed": f"{round(row.collapsed * row.seeds)} of {row.seeds}" if known else wording.MISSING,
        "Effective rows": share(row.frac_effective),
        "Gradient norm": wording.MISSING if pd.isna(row.grad_norm) else f"{row.grad_norm:.3g}",
        "Steps clipped": share(row.frac_grad_clipped),
        "Ratio clipped": share(row.clip_ratio),
    }


def timings(summary: pd.DataFrame) -> Table | None:
    """A line for each method of the default variant: settings in file order, G descending.

    Published seconds appear only if the paper has any.
    """
    cells = summary[(summary.role == "train") & (summary.measure == "seconds") & (summary.variant == DEFAULT)]
    if cells.empty:
        return None
    setting, method = cells.setting.factorize()[0], cells.method.map(method_order)
    cells = ordered(cells, setting=setting, budget=-cells.num_generations, method=method)
    there = {(row.setting, row.num_generations, row.method): row for row in cells.itertuples()}
    published = bool(cells.published.notna().any())
    lines = [
        dict(_times(row, there.get((*key[:2], METHODS[key[2]].baseline)), published)) for key, row in there.items()
    ]
    caption = f"{TIMINGS} Published: the paper's, on its machine." if published else TIMINGS
    return Table("timings", caption, pd.DataFrame(lines), 2, cells)


def _times(row: Any, baseline: Any, published: bool) -> Iterator[tuple[str, str]]:
    yield from (("Setting", row.setting), ("G", str(row.num_generations)), ("Method", label(row.method)))
    fields = (("Published", "published", ""),) if published else ()
    for name, field, nothing in (*fields, ("Ours", "mean", wording.MISSING)):
        ours, base = (getattr(each, field, None) for each in (row, baseline))
        yield f"{name} (s)", nothing if pd.isna(ours) else f"{ours:.{1 if ours < 100 else 0}f}"
        told = pd.notna(ours) and pd.notna(base)
        yield f"{name}, ratio", f"{ours / base:.2f}" if told else nothing if baseline else ""
    yield "Seeds", wording.seeds(row.seeds, row.planned)


def share(value: float) -> str:
    """A share with three digits: "0.125%"."""
    return wording.MISSING if pd.isna(value) else f"{100 * value:.3g}%"
