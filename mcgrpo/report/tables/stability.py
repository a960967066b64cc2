"""The table of stability: seeds that collapse, the worst seed beside the mean, gradient norms and clipping."""

from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import trained_accuracies
from mcgrpo.analyse.stability import COLLAPSE
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import label, method_order
from mcgrpo.study.variants import DEFAULT, flips_of

NAME = "stability"
TEXT = (
    f"Stability. Collapsed: seeds whose {{decoding}} accuracy is more than {100 * COLLAPSE:g} points below the median "
    "seed of the mean-centred method at the same G, under the same variant or else the default. Effective rows: how "
    "many rows carry the update, (sum |A|)² / sum A² as a share of its rows. Gradient norm: before clipping, mean over "
    "steps and seeds. Steps clipped: share of optimizer steps whose gradient is longer than max_grad_norm. Ratio "
    "clipped: share of tokens whose ratio of probabilities is outside the clip range. None of these numbers has an "
    "interval; that of the accuracy is in the tables of accuracy. Of {sizes}."
)
OF_TRAINING = ["frac_effective", "grad_norm", "frac_grad_clipped", "clip_ratio"]


def table(summary: pd.DataFrame) -> Table | None:
    """Every trained cell but those with injected flips, a block for each variant and G; the default variant first.

    Sampled accuracies, or greedy ones if nothing is sampled.
    """
    cells = trained_accuracies(summary)
    cells = cells[cells.variant.map(flips_of).isna()]
    if cells.empty:
        return None
    trained = summary[(summary.role == "train") & summary.measure.isin(OF_TRAINING)]
    wide = trained.pivot_table(index=[*CELL], columns="measure", values="mean").reindex(columns=OF_TRAINING)
    cells = ordered(
        cells.join(wide, on=[*CELL]),
        setting=cells.setting,
        other=cells.variant != DEFAULT,
        variant=cells.variant,
        benchmark=cells.benchmark,
        budget=cells.num_generations,
        method=cells.method.map(method_order),
    )
    decoding = cells.decoding.iloc[0]
    frame = pd.DataFrame([_line(row) for row in cells.itertuples()])
    frame = frame.rename(columns={"Accuracy": f"{decoding.capitalize()} (%)"})
    return Table(NAME, TEXT.format(decoding=decoding, sizes=wording.sizes(cells)), frame, 4, cells)


def _line(row: Any) -> dict[str, Any]:
    known = pd.notna(row.collapsed)
    return {
        "Setting": row.setting,
        "Benchmark": row.benchmark,
        "Variant": row.variant,
        "G": str(row.num_generations),
        "Method": label(row.method),
        "Accuracy": wording.number(row.mean, "percent"),
        "Worst seed (%)": wording.number(row.worst, "percent"),
        "Collapsed": f"{round(row.collapsed * row.seeds)} of {row.seeds}" if known else wording.MISSING,
        "Effective rows": share(row.frac_effective),
        "Gradient norm": wording.MISSING if pd.isna(row.grad_norm) else f"{row.grad_norm:.3g}",
        "Steps clipped": share(row.frac_grad_clipped),
        "Ratio clipped": share(row.clip_ratio),
    }


def share(value: float) -> str:
    """A share with three digits: "0.125%"."""
    return wording.MISSING if pd.isna(value) else f"{100 * value:.3g}%"
