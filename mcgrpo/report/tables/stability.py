"""The table of stability: seeds that collapse, the worst seed beside the mean, gradient norms and clipping."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import trained_accuracies
from mcgrpo.analyse.stability import COLLAPSE
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables import accuracy
from mcgrpo.report.tables.display import Display, Entry, Line
from mcgrpo.report.tables.rows import ordered
from mcgrpo.study.methods import is_median, label, method_order
from mcgrpo.study.variants import DEFAULT, flips_of

NAME = "stability"
TEXT = (
    f"Stability. Collapsed: seeds whose {{decoding}} accuracy is more than {100 * COLLAPSE:g} points below the median "
    "seed of the mean-centred method at the same G, under the same variant or else the default. Effective rows: how "
    "many rows carry the update, (sum |A|)² / sum A² as a share of its rows. Gradient norm: before clipping, mean over "
    "steps and seeds. Steps clipped: share of optimizer steps whose gradient is longer than max_grad_norm. Ratio "
    "clipped: share of tokens whose ratio of probabilities is outside the clip range. None of these numbers has an "
    "interval; that of the accuracy is in the tables of accuracy"
)
OF_TRAINING = ("frac_effective", "grad_norm", "frac_grad_clipped", "clip_ratio")


def select(summary: pd.DataFrame) -> pd.DataFrame:
    """Every trained cell but those with injected flips, with the measures `OF_TRAINING` as columns.

    Sampled accuracies, or greedy ones if nothing is sampled; the default variant first.
    """
    cells = trained_accuracies(summary)
    cells = cells[cells.variant.map(flips_of).isna()]
    trained = summary[(summary.role == "train") & summary.measure.isin(OF_TRAINING)]
    wide = trained.pivot_table(index=[*CELL], columns="measure", values="mean").reindex(columns=list(OF_TRAINING))
    cells = cells.join(wide, on=[*CELL])
    return ordered(
        cells,
        setting=cells.setting,
        other=cells.variant != DEFAULT,
        variant=cells.variant,
        benchmark=cells.benchmark,
        budget=cells.num_generations,
        method=cells.method.map(method_order),
    )


def display(cells: pd.DataFrame) -> Display:
    """The selected cells as they are printed, a block for each variant and G."""
    rows = list(cells.itertuples())
    lines = tuple(
        Line(
            (row.setting, row.benchmark, row.variant, str(row.num_generations)),
            tuple(_entries(row)),
            is_median(row.method),
        )
        for row in rows
    )
    headings = ("Setting", "Benchmark", "Variant", "G", "Method", f"{rows[0].decoding.capitalize()} (%)",
                "Worst seed (%)", "Collapsed", "Effective rows", "Gradient norm", "Steps clipped",
                "Ratio clipped")  # fmt: skip
    problems = accuracy.problems(rows)
    sizes = f"{problems[:1].upper()}{problems[1:]}; {accuracy.seeds(rows)}."
    return Display(NAME, f"{TEXT.format(decoding=rows[0].decoding)}. {sizes}", headings, lines, ruled=3)


def _entries(row: Any) -> Iterable[Entry]:
    yield Entry(label(row.method))
    yield Entry(wording.percent(row.mean))
    yield Entry(wording.percent(row.worst))
    known = pd.notna(row.collapsed)
    yield Entry(f"{round(row.collapsed * row.seeds)} of {row.seeds}" if known else wording.MISSING)
    yield Entry(_share(row.frac_effective))
    yield Entry(wording.MISSING if pd.isna(row.grad_norm) else f"{row.grad_norm:.3g}")
    yield Entry(_share(row.frac_grad_clipped))
    yield Entry(_share(row.clip_ratio))


def _share(value: float) -> str:
    return wording.MISSING if pd.isna(value) else f"{100 * value:.3g}%"
