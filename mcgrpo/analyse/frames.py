"""The contract's CSV files as checked DataFrames, and the two accuracies that tables and figures show."""

import csv
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.files import RecordError, as_record
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.variants import DEFAULT
from mcgrpo.sums import check_seal

R = TypeVar("R")
DECODINGS = ("greedy", "sampled")
BOOLEANS = {"True": True, "False": False}
"""As `mcgrpo.files.write_csv` spells them."""


def read_records(path: str | Path, kind: type[R]) -> list[R]:
    """The rows of a CSV file of records `kind`; empty optional fields become None.

    Raises:
        RecordError: for a missing file, other columns than the record's, a required field that is empty, or a value of
            the wrong type, naming file, line and field; for a sealed file that has changed.
    """
    check_seal(Path(path))
    header, *rows = _read_rows(path)
    hints = typing.get_type_hints(kind)
    if header != list(hints):
        odd = [name for name in hints if name not in header] or [name for name in header if name not in hints]
        culprit = f"column {odd[0]!r} is missing or unknown" if odd else "columns are repeated or in another order"
        raise RecordError(f"{path}: {culprit}; {kind.__name__} has {', '.join(hints)}")
    bases = [_base(hint)[0] for hint in hints.values()]
    records = []
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise RecordError(f"{path}:{line}: {len(row)} fields, not the header's {len(header)}")
        values = map(_value, row, bases)
        records.append(as_record(kind, dict(zip(hints, values, strict=True)), f"{path}:{line}"))
    return records


def read_frame(path: str | Path, kind: type) -> pd.DataFrame:
    """The same as a DataFrame: empty optional fields become NaN, and dtypes follow the record's."""
    records, columns = read_records(path, kind), {}
    for name, hint in typing.get_type_hints(kind).items():
        base, is_optional = _base(hint)
        dtype = {int: "Int64" if is_optional else "int64", float: "float64"}.get(base, object)
        columns[name] = pd.Series([getattr(record, name) for record in records], dtype=dtype)
    return pd.DataFrame(columns)


def _read_rows(path: str | Path) -> list[list[str]]:
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file") from None
    except (csv.Error, ValueError) as error:
        raise RecordError(f"{path}: not a CSV table with a header ({error})") from None
    return rows or [[]]


def _base(hint: Any) -> tuple[Any, bool]:
    """The type of a field's values, and whether it may be empty."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return options[0], type(None) in options


def _value(text: str, base: Any) -> Any:
    """What a text stands for in a column of a type: None if it is empty, the text itself if it is no such value."""
    if not text or base not in (int, float, bool):
        return text or None
    try:
        return BOOLEANS[text] if base is bool else base(text)
    except (ValueError, KeyError):
        return text


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


def seed_gains(gains: pd.DataFrame, cell: Any, kind: str = "difference") -> list[float]:
    """What each seed adds to a cell's `difference` or `change`, in the order of seeds; `gains` has a row per `Gain`."""
    same = gains.kind == kind
    for name, value in CellKey.of(cell)._asdict().items():
        same &= gains[name] == value
    return gains[same].sort_values("seed").gain.tolist()
