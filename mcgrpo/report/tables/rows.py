"""The rows of the accuracy tables: the planned cells of each table, in order, by decoding."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import DECODINGS, accuracies, is_among
from mcgrpo.study.methods import UNTRAINED, method_order
from mcgrpo.study.variants import COMPOSITE, DEFAULT, flips_of, is_rival


@dataclass(frozen=True)
class Row:
    """One cell by decoding: `cells["greedy"]` is a row of the summary, a named tuple with the fields of `Cell`."""

    key: CellKey
    cells: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """One table: the planned cells of some methods and variants on benchmarks of a role.

    `only_where` limits it to the settings and G for which that method is planned (a control is not run everywhere).
    `changes` adds the paired change from the default variant, `reference` the cells of the default variant. `caveat` is
    printed if the table shows published numbers.
    """

    name: str
    caption: str
    methods: tuple[str, ...]
    role: str = "in"
    variants: Callable[[str], bool] = field(default=lambda variant: variant == DEFAULT)
    only_where: str | None = None
    changes: bool = False
    caveat: str = ""


def is_injected(variant: str) -> bool:
    """Whether a variant injects sign flips."""
    return flips_of(variant) is not None


def is_other(variant: str) -> bool:
    """Whether a variant has no table of its own."""
    return variant not in (DEFAULT, COMPOSITE) and not is_injected(variant) and not is_rival(variant)


def select(table: Table, summary: pd.DataFrame) -> pd.DataFrame:
    """The table's cells, a row per `Cell` with its `decoding`, in the order in which they are printed.

    Order: setting and benchmark as in the summary, the untrained model, the default variant before the others (injected
    flips by rate), G descending, methods as in `METHODS`. Empty if the study plans none.
    """
    cells = accuracies(summary, table.role, variant=None)
    chosen = cells[cells.method.isin(table.methods) & cells.variant.map(table.variants).astype(bool)]
    if table.only_where:
        chosen = chosen[is_among(chosen, chosen[chosen.method == table.only_where], ["setting", "num_generations"])]
    if chosen.empty:
        return chosen
    beside = (cells.method == UNTRAINED) & (cells.variant == DEFAULT)
    beside &= cells.setting.isin(chosen.setting) & cells.benchmark.isin(chosen.benchmark)
    if table.changes:
        default = cells[cells.variant == DEFAULT]
        same = default[is_among(default, chosen, ["setting", "benchmark", "num_generations", "method"])]
        beside |= cells.index.isin(same.index)
    rows = pd.concat([chosen, cells[beside & ~cells.index.isin(chosen.index)]])
    return ordered(
        rows,
        setting=as_first_seen(rows.setting, cells.setting),
        benchmark=as_first_seen(rows.benchmark, cells.benchmark),
        trained=rows.method != UNTRAINED,
        variant=rows.variant.map(_variant_order),
        budget=-rows.num_generations,
        method=rows.method.map(method_order),
        decoding=rows.decoding.map(DECODINGS.index),
    )


def ordered(rows: pd.DataFrame, **keys: pd.Series) -> pd.DataFrame:
    """The rows sorted by these keys, the first before the others."""
    return rows.loc[pd.DataFrame(keys).sort_values(list(keys), kind="stable").index]


def as_first_seen(values: pd.Series, among: pd.Series) -> pd.Series:
    """A key that sorts values in the order in which they first occur in another series."""
    return values.map(list(dict.fromkeys(among)).index)


def _variant_order(variant: str) -> tuple:
    flips = flips_of(variant)
    return (variant != DEFAULT, flips is not None, *((flips.rule, flips.rate) if flips else ()), variant)


def as_rows(cells: pd.DataFrame) -> list[Row]:
    """The selected cells, one `Row` for all decodings of each."""
    by_key: dict[CellKey, dict[str, Any]] = {}
    for cell in cells.itertuples(index=False):
        by_key.setdefault(CellKey.of(cell).without_measure, {})[cell.decoding] = cell
    return [Row(key, by_decoding) for key, by_decoding in by_key.items()]
