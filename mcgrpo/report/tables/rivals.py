"""The table of rivals: other estimators and batches beside GRPO, at the same G and at the same number of rollouts."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import is_among, trained_accuracies
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables import accuracy
from mcgrpo.report.tables.display import Display, Entry, Line, difference
from mcgrpo.report.tables.rows import ordered
from mcgrpo.study.methods import METHODS, is_median, label, method_order
from mcgrpo.study.variants import DEFAULT, is_rival, rival_of

NAME = "rivals"
TEXT = (
    "Rivals: GRPO with another estimator or batch (the variants rival-...) beside the study's methods, in {decoding} "
    "accuracy. Rollouts: drawn in a whole training, extra ones among them"
)
PLACE = ["setting", "benchmark", "num_generations"]


def select(summary: pd.DataFrame) -> pd.DataFrame:
    """The rivals, with the default cells of GRPO's loss at the same G and at the G of as many rollouts.

    Sampled accuracies, or greedy ones if nothing is sampled; with the `rollouts` of a training as a column. Empty if
    the study has no rival.
    """
    cells = trained_accuracies(summary)
    rivals = cells[cells.variant.map(is_rival).astype(bool)]
    beside = cells[(cells.variant == DEFAULT) & cells.method.map(_is_of_rivals).astype(bool)]
    equal = pd.concat([rivals, beside]).dropna(subset="same_rollouts_generations")
    equal = equal[equal.setting.isin(rivals.setting)]
    places = pd.concat([rivals[PLACE], equal[PLACE], _of_as_many(equal)])
    beside = beside[is_among(beside, places, PLACE)]
    trained = summary[(summary.role == "train") & (summary.measure == "rollouts")]
    shown = pd.concat([beside, rivals]).join(trained.set_index([*CELL])["mean"].rename("rollouts"), on=[*CELL])
    keys = {name: shown[name] for name in PLACE}
    other, method = shown.variant != DEFAULT, shown.method.map(method_order)
    return ordered(shown, **keys, other=other, method=method, variant=shown.variant)


def _is_of_rivals(method: str) -> bool:
    """Rivals are variants of GRPO: the methods of its loss stand beside them."""
    return METHODS[method].loss_type == METHODS["grpo"].loss_type


def _of_as_many(equal: pd.DataFrame) -> pd.DataFrame:
    """The places of the cells that others are compared with at as many rollouts."""
    return equal[PLACE].assign(num_generations=equal.same_rollouts_generations.astype("int64"))


def display(cells: pd.DataFrame) -> Display:
    """The selected cells as they are printed, a block for each G."""
    rows = list(cells.itertuples())
    lines = tuple(
        Line((row.setting, row.benchmark, str(row.num_generations)), tuple(_entries(row)), is_median(row.method))
        for row in rows
    )
    headings = ("Setting", "Benchmark", "G", "Method", "Rollouts", f"{rows[0].decoding.capitalize()} (%)",
                "Gain at the same G", "Gain at as many rollouts", "Seeds")  # fmt: skip
    return Display(NAME, _caption(rows), headings, lines, ruled=3)


def _entries(row: Any) -> Iterable[Entry]:
    yield Entry(label(row.method) if row.variant == DEFAULT else rival_of(row.variant))
    yield Entry(wording.MISSING if pd.isna(row.rollouts) else f"{row.rollouts:.0f}")
    yield Entry(wording.accuracy(row.mean, row.low, row.high))
    paired = "change" if row.variant != DEFAULT else "difference"
    yield difference(row, paired) if row.variant != DEFAULT or pd.notna(row.baseline) else Entry("")
    there = pd.notna(row.same_rollouts_generations)
    yield difference(row, "same_rollouts", f"G={row.same_rollouts_generations}") if there else Entry("")
    yield Entry(wording.seeds(row.seeds, row.planned))


def _caption(rows: list[Any]) -> str:
    margins = (row.equivalence_margin for row in rows if pd.notna(row.equivalence_margin))
    parts = [
        f"{TEXT.format(decoding=rows[0].decoding)}.",
        f"Accuracy in percent{accuracy.intervals(rows)}; {accuracy.problems(rows)}; {accuracy.seeds(rows)}.",
        "Gains: paired differences in points to GRPO at the same G, and to GRPO at the G at which a training draws as",
        "many rollouts.",
        wording.about_verdicts(next(margins, None)),
    ]
    return " ".join(parts)
