"""The CSV files as DataFrames, their seals checked; cells beside the pairs that they are in; the accuracies shown."""

import types
import typing
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.records import Cell, Contrast
from mcgrpo.files import RecordError
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.variants import DEFAULT
from mcgrpo.sums import check_seal

R = TypeVar("R")
DECODINGS = ("greedy", "sampled")
PAIRED = ("", "_low", "_high", "_seeds", "_over", "_verdict", "_detectable")
"""Of a pair, what stands beside its cell in columns that start with its kind: columns of `Contrast`, `value` as ""."""


def read_frame(path: str | Path, kind: type, sealed: bool = True) -> pd.DataFrame:
    """The rows of a CSV file of records `kind`. In an empty field there is NaN, in one of text None.

    Args:
        path: the file.
        kind: of its rows.
        sealed: whether a stage has written it, and its seal; a file of `config/` has none.

    Raises:
        RecordError: for a missing file, one that has changed or whose seal is missing, other columns than the record's,
            a required number that is empty, or a value of the wrong type, naming the file.
    """
    if sealed:
        check_seal(Path(path), needed=True)
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


def read_records(path: str | Path, kind: type[R], sealed: bool = True) -> list[R]:
    """The same as records, with None in empty fields."""
    frame = read_frame(path, kind, sealed).astype(object)
    return [kind(**row) for row in frame.where(frame.notna(), None).to_dict("records")]


def _dtype(hint: Any) -> Any:
    """The dtype of a column."""
    if isinstance(hint, types.UnionType):
        return {int: "Int64", float: "float64", bool: "boolean"}.get(typing.get_args(hint)[0], object)
    return {int: "int64", float: "float64"}.get(hint, object)


def is_among(rows: pd.DataFrame, others: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """For each row, whether any of the others equals it in these columns."""
    return pd.MultiIndex.from_frame(rows[columns]).isin(pd.MultiIndex.from_frame(others[columns]))


def read_cells(files: ResultFiles) -> pd.DataFrame:
    """The rows of summary.csv with the pairs of comparisons.csv that each is in; see `with_pairs`."""
    return with_pairs(read_frame(files.summary, Cell), read_frame(files.comparisons, Contrast))


def with_pairs(summary: pd.DataFrame, comparisons: pd.DataFrame) -> pd.DataFrame:
    """The rows of a summary, each beside the pairs that its cell is the first of.

    `difference` is the value of the pair of this kind, `difference_low` its limit and so on (`PAIRED`), the same for
    `change`, `same_rollouts` and `control`; all are empty where the study plans none. `baseline` is the method that
    `difference` is taken from, `same_rollouts_generations` the G of the other cell of `same_rollouts`; of a difference
    there are also `published_difference`, `difference_excludes_published`, `difference_by_seed` and the
    `equivalence_margin`.
    """
    key = list(CellKey._fields)
    for kind, more in KINDS.items():
        own = comparisons[comparisons.kind == kind]
        names = {(ending[1:] or "value"): f"{kind}{ending}" for ending in PAIRED} | more
        columns = own[[*key, *names]].astype({"num_generations": "int64"}).rename(columns=names)
        summary = summary.merge(columns, on=key, how="left", validate="one_to_one")
    texts = summary.select_dtypes(object)
    summary[texts.columns] = texts.where(texts.notna(), None)
    margins = comparisons.equivalence_margin.dropna()
    return summary.assign(equivalence_margin=margins.max() if len(margins) else float("nan"))


KINDS = {
    "difference": {
        "other_method": "baseline", "published": "published_difference", "by_seed": "difference_by_seed",
        "excludes_published": "difference_excludes_published",
    },
    "change": {},
    "same_rollouts": {"other_num_generations": "same_rollouts_generations"},
    "control": {},
}  # fmt: skip
"""The kinds of pairs, with the columns that a cell has of each beside `PAIRED`, and their names there."""


def accuracies(summary: pd.DataFrame, role: str, variant: str | None = DEFAULT) -> pd.DataFrame:
    """The rows of `summary` that hold accuracies on benchmarks of `role`; with `variant` None, of all."""
    rows = summary[(summary.role == role) & (summary.variant.eq(variant) if variant else True)]
    return rows[rows.decoding.notna()]


def trained_accuracies(summary: pd.DataFrame) -> pd.DataFrame:
    """Those of role `in`, of trained models under every variant: sampled ones, or greedy ones if nothing is sampled."""
    cells = accuracies(summary, "in", variant=None)
    decoding = "sampled" if (cells.decoding == "sampled").any() else "greedy"
    return cells[(cells.method != UNTRAINED) & (cells.decoding == decoding)]


def seed_gains(cell: Any) -> list[float]:
    """What each seed adds to a cell's `difference`, in the order of seeds."""
    return [float(gain) for gain in (cell.difference_by_seed or "").split()]
