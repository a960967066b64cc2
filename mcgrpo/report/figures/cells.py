"""Panels of figures: the settings and benchmarks of cells, and what their axes are called."""

import pandas as pd


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
