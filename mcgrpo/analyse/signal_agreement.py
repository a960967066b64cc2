"""Whether computed signal says which method gains: predicted beside measured gains, over the cells of a study."""

import math
from typing import NamedTuple

import pandas as pd
from scipy.stats import spearmanr

from mcgrpo.analyse.stats import LEVEL, t_quantile

LEAST = 4
"""Cells below which a rank correlation has no interval."""


class Agreement(NamedTuple):
    """The rank correlation of predicted and measured gains, over the cells that have both.

    Args:
        cells: how many.
        correlation: Spearman's; None for fewer than `LEAST` cells, or gains that are all the same.
        low: with `high` its 95% interval: Fisher's transformation with the standard error of Bonett and Wright (2000,
            Psychometrika 65(1)). It takes cells as independent, but those of one G share a baseline: without any
            agreement it excludes 0 in up to 8% of studies.
        decided: cells with a predicted gain whose measured gain is better or worse.
        right: of these, how many gained in the direction that was computed.
    """

    cells: int
    correlation: float | None
    low: float | None
    high: float | None
    decided: int
    right: int


def agreement(signals: pd.DataFrame) -> Agreement:
    """How well the signals of one source predict.

    Args:
        signals: a row per `CellSignal`, of one `source`.
    """
    rows = signals[signals.predicted.notna() & signals.gain.notna()]
    decided = rows[rows.gain_verdict.isin(["better", "worse"]) & (rows.predicted != 0)]
    right = int(((decided.gain > 0) == (decided.predicted > 0)).sum())
    varied = rows.gain.nunique() > 1 and rows.predicted.nunique() > 1
    if len(rows) < LEAST or not varied:
        return Agreement(len(rows), None, None, None, len(decided), right)
    correlation = float(spearmanr(rows.predicted, rows.gain).statistic)
    inner = min(max(correlation, -1 + 1e-12), 1 - 1e-12)
    half = t_quantile((1 + LEVEL) / 2, math.inf) * math.sqrt((1 + correlation**2 / 2) / (len(rows) - 3))
    low, high = (math.tanh(math.atanh(inner) + side * half) for side in (-1, 1))
    return Agreement(len(rows), correlation, low, high, len(decided), right)
