"""Whether computed signal says which method gains: predicted beside measured gains, over the cells of a study."""

import math
from typing import NamedTuple

import pandas as pd
from scipy import special, stats

from mcgrpo.analyse.stats import LEVEL

LEAST = 4
"""Predictions below which a rank correlation has no interval."""


class Agreement(NamedTuple):
    """The rank correlation of predicted and measured gains, over the `predictions` of cells that have both.

    Args:
        correlation: Spearman's; None for fewer than `LEAST`, or gains that are all the same.
        low: with `high` its 95% interval: Fisher's transformation with the standard error of Bonett and Wright (2000,
            Psychometrika 65(1)). It takes predictions as independent, but those of one G share a baseline.
    """

    predictions: int
    correlation: float | None = None
    low: float | None = None
    high: float | None = None


def agreement(signals: pd.DataFrame) -> Agreement:
    """How well the signals at one time predict.

    Cells with one prediction, as at several learning rates, count once, with the mean of their gains.

    Args:
        signals: a row per `CellSignal`, of one `source` a setting.
    """
    known = signals[signals.predicted.notna() & signals.gain.notna()]
    rows = known.groupby(["setting", "predicted"], as_index=False).gain.mean()
    if len(rows) < LEAST or rows.gain.nunique() < 2 or rows.predicted.nunique() < 2:
        return Agreement(len(rows))
    correlation = float(stats.spearmanr(rows.predicted, rows.gain).statistic)
    inner = min(max(correlation, -1 + 1e-12), 1 - 1e-12)
    half = float(special.ndtri((1 + LEVEL) / 2)) * math.sqrt((1 + correlation**2 / 2) / (len(rows) - 3))
    return Agreement(len(rows), correlation, *(math.tanh(math.atanh(inner) + side * half) for side in (-1, 1)))
