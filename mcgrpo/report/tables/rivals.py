"""The table of rivals: other estimators and batches beside GRPO, at the same G and at the same number of rollouts."""

from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import is_among, trained_accuracies
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import METHODS, label, method_order
from mcgrpo.study.variants import DEFAULT, is_rival, rival_of

NAME = "rivals"
TEXT = (
    "Rivals: GRPO with another estimator or batch (the variants rival-...) beside the study's methods, in {decoding} "
    "accuracy. Rollouts: drawn in a whole training, extra ones among them. Accuracy in percent{intervals}; {sizes}. "
    "Gains: paired differences in points to GRPO at the same G, and to GRPO at the G at which a training draws as "
    "many rollouts. "
)
PLACE = ["setting", "benchmark", "num_generations"]


def table(summary: pd.DataFrame) -> Table | None:
    """A block for each G; None if the study has no rival."""
    cells = select(summary)
    if cells.empty:
        return None
    decoding = cells.decoding.iloc[0]
    caption = TEXT.format(decoding=decoding, intervals=wording.intervals(cells), sizes=wording.sizes(cells))
    frame = pd.DataFrame([_line(row) for row in cells.itertuples()])
    frame = frame.rename(columns={"Accuracy": f"{decoding.capitalize()} (%)"})
    return Table(NAME, caption + wording.about_verdicts(cells.equivalence_margin.max()), frame, 3, cells)


def select(summary: pd.DataFrame) -> pd.DataFrame:
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


def _line(row: Any) -> dict[str, Any]:
    paired = "difference" if row.variant == DEFAULT else "change"
    compared, equal = row.variant != DEFAULT or pd.notna(row.baseline), row.same_rollouts_generations
    return {
        "Setting": row.setting,
        "Benchmark": row.benchmark,
        "G": str(row.num_generations),
        "Method": label(row.method) if row.variant == DEFAULT else rival_of(row.variant),
        "Rollouts": wording.MISSING if pd.isna(row.rollouts) else f"{row.rollouts:.0f}",
        "Accuracy": wording.estimate(row.mean, row.low, row.high, "percent"),
        "Gain at the same G": wording.gain(row, paired) if compared else "",
        "Gain at as many rollouts": wording.gain(row, "same_rollouts", f"G={equal}") if pd.notna(equal) else "",
        "Seeds": wording.seeds(row.seeds, row.planned),
    }
