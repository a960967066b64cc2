"""Panels of figures: the settings and benchmarks of cells, and what their axes are called."""

import pandas as pd


def blocks_of(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Each (setting, benchmark) of the rows, sorted."""
    return sorted(set(zip(rows.setting, rows.benchmark, strict=True)))


def block(rows: pd.DataFrame, setting: str, benchmark: str) -> pd.DataFrame:
    """The rows of one setting and benchmark."""
    return rows[(rows.setting == setting) & (rows.benchmark == benchmark)]


def measure_of(rows: pd.DataFrame) -> str:
    """How an axis names the accuracies of these rows, which have one decoding: "greedy", or "sampled (avg@4)"."""
    decoding, names = rows.decoding.iloc[0], sorted(rows.measure.unique())
    return "greedy" if decoding == "greedy" else f"sampled ({', '.join(names)})"
