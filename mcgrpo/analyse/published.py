"""The numbers that the paper prints: read from config/published.csv, and by the cells of our own summary."""

import math
from pathlib import Path

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.records import Published

TABLES = ("main", "dapo", "drgrpo", "ood", "composite", "control", "text")
"""Where a number stands; the earlier place is taken where the paper prints a cell in several."""
OUT = ("aime24", "amc23")
"""Benchmarks that are out of distribution in every setting."""


def read_published(path: str | Path) -> list[Published]:
    """All rows of the file; errors as in `mcgrpo.analyse.frames.read_frame`."""
    return read_records(path, Published)


def as_cells(rows: list[Published]) -> pd.DataFrame:
    """The columns of `CellKey`, `mean` and its `difference` from the baseline's, if that is printed.

    Accuracies are fractions, under the measure `greedy`.
    A cell that stands in several tables is taken from the first of `TABLES`.
    """
    cells = {
        _key(row): row.value / (1 if row.measure == "seconds" else 100)
        for row in sorted(rows, key=lambda row: TABLES.index(row.table), reverse=True)
    }
    rows = ((key, value, value - cells.get(key.baseline, math.nan)) for key, value in cells.items())
    return pd.DataFrame([{**key._asdict(), "mean": value, "difference": gain} for key, value, gain in rows])


def _key(row: Published) -> CellKey:
    of_model = "greedy", "out" if row.benchmark in OUT else "in"
    measure, role = ("seconds", "train") if row.measure == "seconds" else of_model
    return CellKey(row.setting or "", row.variant, role, row.benchmark, measure, row.num_generations, row.method)
