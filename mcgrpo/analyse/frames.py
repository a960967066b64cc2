"""The CSV files as DataFrames, and the two accuracies that tables and figures show."""

import types
import typing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.files import RecordError
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.variants import DEFAULT
from mcgrpo.sums import check_seal

R = TypeVar("R")
DECODINGS = ("greedy", "sampled")


def read_frame(path: str | Path, kind: type) -> pd.DataFrame:
    """The rows of a CSV file of records `kind`. In an empty field there is NaN, in one of text None.

    Raises:
        RecordError: for a missing file, a sealed one that has changed, other columns than the record's, a required
            number that is empty, or a value of the wrong type, naming the file.
    """
    check_seal(Path(path))
    hints = typing.get_type_hints(kind)
    dtypes = {name: _dtype(hint) for name, hint in hints.items()}
    empty = {name: ["", "nan"] if dtype == "float64" else [""] for name, dtype in dtypes.items()}
    try:
        frame = pd.read_csv(path, dtype=dtypes, keep_default_na=False, na_values=empty)
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file") from None
    except ValueError as error:
        raise RecordError(f"{path}: not a table of {kind.__name__} ({error})") from None
    if list(frame) != list(hints) or not isinstance(frame.index, pd.RangeIndex):
        odd = [name for name in (*hints, *frame) if (name in hints) != (name in frame)]
        culprit = f"column {odd[0]!r} is missing or unknown" if odd else "columns are not in this order"
        raise RecordError(f"{path}: {culprit}; {kind.__name__} has {', '.join(hints)}")
    if wanting := [name for name, hint in hints.items() if hint is float and frame[name].isna().any()]:
        raise RecordError(f"{path}: column {wanting[0]!r} has an empty field")
    texts = frame.select_dtypes(object)
    frame[texts.columns] = texts.where(texts.notna(), None)
    return frame


def read_records(path: str | Path, kind: type[R]) -> list[R]:
    """The same as records, with None in empty fields."""
    frame = read_frame(path, kind).astype(object)
    return [kind(**row) for row in frame.where(frame.notna(), None).to_dict("records")]


def _dtype(hint: Any) -> Any:
    """The dtype of a column."""
    if isinstance(hint, types.UnionType):
        return {int: "Int64", float: "float64", bool: "boolean"}.get(typing.get_args(hint)[0], object)
    return {int: "int64", float: "float64"}.get(hint, object)


def is_among(rows: pd.DataFrame, others: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """For each row, whether any of the others equals it in these columns."""
    return pd.MultiIndex.from_frame(rows[columns]).isin(pd.MultiIndex.from_frame(others[columns]))


def accuracies(summary: pd.DataFrame, role: str, variant: str | None = DEFAULT) -> pd.DataFrame:
    """The rows of `summary` that hold accuracies on benchmarks of `role`, with their `decoding` as a column.

    `greedy` is greedy; of `avg@k` the largest k on each setting and benchmark is sampled. With `variant` None, of all.
    """
    rows = summary[(summary.role == role) & (summary.variant.eq(variant) if variant else True)]
    k = rows.measure.str.extract(r"^avg@(\d+)$", expand=False).astype(float)
    largest = k.groupby([rows.setting, rows.benchmark]).transform("max")
    decoding = pd.Series(None, index=rows.index, dtype=object)
    decoding[rows.measure == "greedy"] = "greedy"
    decoding[k.notna() & (k == largest)] = "sampled"
    return rows.assign(decoding=decoding).dropna(subset="decoding")


def trained_accuracies(summary: pd.DataFrame) -> pd.DataFrame:
    """Those of role `in`, of trained models under every variant: sampled ones, or greedy ones if nothing is sampled."""
    cells = accuracies(summary, "in", variant=None)
    decoding = "sampled" if (cells.decoding == "sampled").any() else "greedy"
    return cells[(cells.method != UNTRAINED) & (cells.decoding == decoding)]


def seed_gains(gains: pd.DataFrame, cell: Any) -> list[float]:
    """What each seed adds to a cell's `difference`, in the order of seeds; `gains` has a row per `Gain`."""
    same = gains.kind == "difference"
    for name, value in CellKey.of(cell)._asdict().items():
        same &= gains[name] == value
    return gains[same].sort_values("seed").gain.tolist()
