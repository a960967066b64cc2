"""How completions were read: their accuracy under each protocol of grading, and how many were cut off or not read."""

from typing import Any

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import accuracies
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import by_variant
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import label
from mcgrpo.study.variants import flips_of

CAPTION = (
    "Grading: the same {decoding} completions under each protocol that the study grades by. Robust, released: points "
    "more or less than under the paper's protocol (released: of greedy completions), without an interval, as the "
    "completions are the same. Cut off: share of completions that ended at the token limit. Unparseable: of greedy and "
    "sampled completions, under the paper's protocol. Of {sizes}."
)
BESIDE = ("Robust", "Released, greedy", "Cut off (%)")


def table(summary: pd.DataFrame) -> Table | None:
    """Every cell but those with injected flips, on every benchmark; sampled accuracies, or greedy ones without any.

    None if the study has no number beside the accuracy under the paper's protocol.
    """
    cells = pd.concat([accuracies(summary, role, variant=None) for role in ("in", "out")])
    decoding = "sampled" if (cells.decoding == "sampled").any() else "greedy"
    cells = cells[(cells.decoding == decoding) & cells.variant.map(flips_of).isna()]
    if cells.empty:
        return None
    means = {CellKey.of(row): row.mean for row in summary.itertuples() if pd.notna(row.mean)}
    cells = by_variant(cells)
    frame = pd.DataFrame([_row(row, means) for row in cells.itertuples()])
    empty = [name for name in frame if (frame[name] == wording.MISSING).all()]
    if {*BESIDE} <= {*empty}:
        return None
    caption = CAPTION.format(decoding=decoding, sizes=wording.sizes(cells))
    return Table("grading", caption, frame.drop(columns=empty), 4, cells)


def _row(row: Any, means: dict[CellKey, float]) -> dict[str, Any]:
    key = CellKey.of(row)

    def share(measure: str) -> str:
        return wording.number(means.get(key._replace(measure=measure), float("nan")), "percent")

    def points(measure: str, paper: str) -> str:
        other, own = (means.get(key._replace(measure=name)) for name in (measure, paper))
        known = other is not None and own is not None
        return f"{100 * (other - own):+.2f}".replace("-", "−") if known else wording.MISSING

    return {
        "Setting": row.setting,
        "Benchmark": row.benchmark,
        "Variant": row.variant,
        "G": str(row.num_generations),
        "Method": label(row.method),
        "Paper (%)": share(row.measure),
        "Robust": points(f"robust-{row.measure}", row.measure),
        "Released, greedy": points("released-greedy", "greedy"),
        "Cut off (%)": share(f"rate-cut-{row.decoding}"),
        "Unparseable (%)": share("rate-unparseable"),
    }
