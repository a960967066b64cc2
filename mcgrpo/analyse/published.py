"""The numbers that the paper prints: read from config/published.csv, and in the shape of our own summary."""

import dataclasses
from pathlib import Path

import pandas as pd

from mcgrpo.analyse.frames import read_frame
from mcgrpo.records import Cell, Published, Role
from mcgrpo.study.methods import METHODS
from mcgrpo.study.variants import DEFAULT

TABLES = ("main", "dapo", "drgrpo", "ood", "composite", "control", "text")
"""Where a number stands; the earlier place is taken where the paper prints a cell in several."""
OUT = ("aime24", "amc23")
TRAINING = "train"
"""The benchmark and the role that training times stand under, as in scores.csv."""

Key = tuple[str, str, int, str, str, str]


def read_published(path: str | Path) -> list[Published]:
    """All rows of the file; errors as in `mcgrpo.analyse.frames.read_frame`."""
    rows = read_frame(path, Published).astype(object)
    return [Published(**row) for row in rows.where(rows.notna(), None).to_dict("records")]


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
    cells = [_cell(row, values) for row in sorted(chosen.values(), key=_key)]
    return pd.DataFrame(cells, columns=[field.name for field in dataclasses.fields(Cell)])


def _key(row: Published) -> Key:
    return row.setting or "", row.method, row.num_generations, row.variant, row.benchmark, row.measure


def _cell(row: Published, values: dict[Key, float]) -> Cell:
    value, baseline = values[_key(row)], METHODS[row.method].baseline
    beside = values.get(_key(dataclasses.replace(row, method=baseline))) if baseline else None
    default = values.get(_key(dataclasses.replace(row, variant=DEFAULT))) if row.variant != DEFAULT else None
    empty = dict.fromkeys(field.name for field in dataclasses.fields(Cell))
    known = {
        "setting": row.setting or "",
        "method": row.method,
        "num_generations": row.num_generations,
        "variant": row.variant,
        "benchmark": row.benchmark,
        "role": role(row),
        "measure": "greedy" if row.measure == "accuracy" else row.measure,
        "planned": 0,
        "seeds": 0,
        "mean": value,
        "baseline": baseline,
        "difference": None if beside is None else value - beside,
        "change": None if default is None else value - default,
    }
    return Cell(**empty | known)
