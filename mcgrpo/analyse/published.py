"""The numbers that the paper prints: read from config/published.csv, and by the cells of our own summary."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.records import Published

PAPER_TABLES = ("main", "dapo", "drgrpo", "ood", "composite", "control", "text")
"""Where a number stands; the earlier place is taken where the paper prints a cell in several."""
OUT = ("aime24", "amc23")
"""Benchmarks that are out of distribution in every setting."""


def read_published(path: str | Path) -> list[Published]:
    """All rows of the file; errors as in `mcgrpo.analyse.frames.read_frame`."""
    return read_records(path, Published, sealed=False)


def number_of(cells: Mapping[CellKey, float], key: CellKey) -> float | None:
    """The paper's number of a cell. One without a setting stands for all whose benchmark is out of distribution."""
    return cells.get(key, cells.get(key._replace(setting="")) if key.role == "out" else None)


def as_cells(rows: Iterable[Published]) -> dict[CellKey, float]:
    """The number of each cell: accuracies are fractions, under the measure `greedy`.

    A cell that stands in several tables is taken from the first of `PAPER_TABLES`.
    """
    cells = {}
    for row in sorted(rows, key=lambda row: PAPER_TABLES.index(row.table), reverse=True):
        of_model = "out" if row.benchmark in OUT else "in", row.benchmark, "greedy"
        place = ("train", row.benchmark, "seconds") if row.measure == "seconds" else of_model
        key = CellKey(row.setting or "", row.variant, *place, row.num_generations, row.method)
        cells[key] = row.value / (1 if row.measure == "seconds" else 100)
    return cells
