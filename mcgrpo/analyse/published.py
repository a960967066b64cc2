"""The numbers that the paper prints: read from config/published.csv, and in the shape of our own summary."""

import dataclasses
from operator import attrgetter
from pathlib import Path

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.records import Cell, Published
from mcgrpo.records import Role

TABLES = ("main", "dapo", "drgrpo", "ood", "composite", "control", "text")
"""Where a number stands; the earlier place is taken where the paper prints a cell in several."""
OUT = ("aime24", "amc23")
TRAINING = "train"
"""The benchmark and the role that training times stand under, as in scores.csv."""


def read_published(path: str | Path) -> list[Published]:
    """All rows of the file; errors as in `mcgrpo.analyse.frames.read_frame`."""
    return read_records(path, Published)


def role(row: Published) -> Role:
    """What the row's benchmark is to its setting."""
    if row.measure == "seconds":
        return TRAINING
    return "out" if row.benchmark in OUT else "in"


def as_cells(rows: list[Published]) -> pd.DataFrame:
    """The numbers as `Cell` rows without seeds and intervals: accuracies as fractions, under the measure `greedy`.

    A cell that stands in several tables is taken from the first of `TABLES`; `difference` and `change` are those of
    the printed numbers.
    """
    chosen = {_key(row): row for row in sorted(rows, key=lambda row: TABLES.index(row.table), reverse=True)}
    values = {key: row.value / (1 if row.measure == "seconds" else 100) for key, row in chosen.items()}
    order = attrgetter("setting", "method", "num_generations", "variant", "benchmark", "measure")
    cells = [_cell(key, values) for key in sorted(values, key=order)]
    return pd.DataFrame(cells, columns=[field.name for field in dataclasses.fields(Cell)])


def _key(row: Published) -> CellKey:
    measure = "greedy" if row.measure == "accuracy" else row.measure
    return CellKey(row.setting or "", row.variant, role(row), row.benchmark, measure, row.num_generations, row.method)


def _cell(key: CellKey, values: dict[CellKey, float]) -> Cell:
    value, baseline, default = values[key], values.get(key.baseline), values.get(key.default)
    empty = dict.fromkeys(field.name for field in dataclasses.fields(Cell))
    known = {
        "planned": 0,
        "seeds": 0,
        "mean": value,
        "baseline": key.baseline and key.baseline.method,
        "difference": None if baseline is None else value - baseline,
        "change": None if default is None else value - default,
    }
    return Cell(**empty | key._asdict() | known)
