"""Training times of a study and the paper's, and their ratio to the mean-centred baseline."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from mcgrpo.report import wording
from mcgrpo.report.tables.display import Display, Entry, Line
from mcgrpo.report.tables.rows import as_first_seen, ordered
from mcgrpo.study.methods import METHODS, label, method_order
from mcgrpo.study.variants import DEFAULT

NAME = "timings"
TEXT = (
    "Training time: wall-clock seconds of a training job, mean over its seeds, on the machine of this study; of each "
    "method, of its mean-centred baseline at the same G, and their ratio; none of these has an interval"
)
PLACES = {
    "published": ("Published (s)", "Published, baseline", "Published, ratio"),
    "mean": ("Ours (s)", "Ours, baseline", "Ours, ratio"),
}
"""Headings by the field of `Cell` with the seconds."""


def select(summary: pd.DataFrame) -> pd.DataFrame:
    """The seconds of every planned cell of the default variant: settings in file order, G descending."""
    chosen = (summary.role == "train") & (summary.measure == "seconds") & (summary.variant == DEFAULT)
    cells = summary[chosen]
    return ordered(
        cells,
        setting=as_first_seen(cells.setting, cells.setting),
        budget=-cells.num_generations,
        method=cells.method.map(method_order),
    )


def display(cells: pd.DataFrame) -> Display:
    """The selected cells as they are printed, a line for each method beside its baseline.

    A baseline without a method to compare has a line of its own. Published seconds appear only if the paper has any.
    """
    rows = {(row.setting, row.num_generations, row.method): row for row in cells.itertuples()}
    pairs = [(rows.get(_baseline(key)), row) for key, row in rows.items()]
    beside = {id(baseline) for baseline, _ in pairs if baseline}
    published = bool(cells.published.notna().any())
    lines = tuple(
        Line((row.setting, str(row.num_generations)), tuple(_entries(baseline, row, published)))
        for baseline, row in pairs
        if id(row) not in beside
    )
    paper = PLACES["published"] if published else ()
    headings = ("Setting", "G", "Method", *paper, *PLACES["mean"], "Seeds")
    caption = f"{TEXT}. Published: the paper's, on its machine." if published else f"{TEXT}."
    return Display(NAME, caption, headings, lines, ruled=1)


def _baseline(key: tuple[str, int, str]) -> tuple[str, int, str | None]:
    return (*key[:2], METHODS[key[2]].baseline)


def _entries(baseline: Any, row: Any, published: bool) -> Iterable[Entry]:
    names = [label(cell.method) for cell in (row, baseline) if cell]
    yield Entry(", ".join(names))
    if published:
        yield from _seconds(baseline, row, "published", nothing="")
    yield from _seconds(baseline, row, "mean", nothing=wording.MISSING)
    seeds = {wording.seeds(cell.seeds, cell.planned) for cell in (baseline, row) if cell}
    yield Entry(" and ".join(sorted(seeds)))


def _seconds(baseline: Any, row: Any, field: str, nothing: str) -> Iterable[Entry]:
    """Seconds of the method, of its baseline, and their ratio; `nothing` is printed for a missing number."""
    ours, base = getattr(row, field), getattr(baseline, field) if baseline else None
    yield Entry(nothing if pd.isna(ours) else wording.seconds(ours))
    yield Entry("" if not baseline else nothing if pd.isna(base) else wording.seconds(base))
    told = pd.notna(ours) and pd.notna(base)
    yield Entry(f"{ours / base:.2f}" if told else nothing if baseline else "")
