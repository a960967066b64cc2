"""The rows of summary.csv that figures select: accuracies of every variant, sign-flip rates of every model."""

import pandas as pd

from mcgrpo.analyse.frames import accuracies
from mcgrpo.analyse.sign_flips import FlipMeasure, parse_measure
from mcgrpo.study.methods import UNTRAINED, label, method_order
from mcgrpo.study.variants import DEFAULT


def all_accuracies(summary: pd.DataFrame, role: str = "in") -> pd.DataFrame:
    """`mcgrpo.analyse.frames.accuracies` of every variant, not only the default."""
    return accuracies(summary.assign(variant=DEFAULT), role).assign(variant=summary.variant)


def blocks_of(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Each (setting, benchmark) of the rows, sorted."""
    return sorted(set(zip(rows.setting, rows.benchmark, strict=True)))


def block(rows: pd.DataFrame, setting: str, benchmark: str) -> pd.DataFrame:
    """The rows of one setting and benchmark."""
    return rows[(rows.setting == setting) & (rows.benchmark == benchmark)]


def measure_of(rows: pd.DataFrame, decoding: str) -> str:
    """How an axis names an accuracy: "greedy", or "sampled (avg@4)"."""
    names = sorted(rows[rows.decoding == decoding].measure.unique())
    return "greedy" if decoding == "greedy" else f"sampled ({', '.join(names)})"


def flip_rates(summary: pd.DataFrame) -> pd.DataFrame:
    """The sign-flip rates, the untrained models first, with the parts of their measure as columns.

    Columns beside those of `Cell`: the parts of `mcgrpo.analyse.sign_flips.FlipMeasure` (whose baseline takes the place
    of the cell's), and `source`, the model in words.

    Raises:
        ValueError: where there is no sign-flip rate.
    """
    rows = summary[(summary.role == "flips") & (summary.variant == DEFAULT) & summary["mean"].notna()]
    rows = rows[rows.measure.str.contains("/")]  # accuracies of the same rollouts apart
    if rows.empty:
        raise ValueError("nothing to show: no sign-flip rate (role 'flips', variant default)")
    parts = pd.DataFrame([parse_measure(measure) for measure in rows.measure], rows.index, FlipMeasure._fields)
    rows = rows.drop(columns="baseline").join(parts)
    rows = rows.assign(source=[_source(row.method, row.num_generations) for row in rows.itertuples()])
    return rows.sort_values("method", key=lambda names: names.map(method_order), kind="stable")


def _source(method: str, num_generations: int) -> str:
    name = label(method)
    return name if method == UNTRAINED else f"{name}, G = {num_generations}"
