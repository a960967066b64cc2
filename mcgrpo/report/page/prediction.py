"""One sentence of the first screen: whether computed signal says which method gains."""

import pandas as pd

from mcgrpo.analyse.signal_agreement import agreement
from mcgrpo.report import wording
from mcgrpo.report.tables.signal import time


def sentence(signals: pd.DataFrame) -> str:
    """Whether computed signal predicts gains, over the cells of all settings; empty without a rank correlation.

    Args:
        signals: a row per `CellSignal`; those of the first time are looked at.
    """
    if signals.empty:
        return ""
    times = signals.source.map(time)
    agreed = agreement(signals[times == times.iloc[0]])
    if agreed.correlation is None:
        return ""
    answer = "predicts" if agreed.low > 0 else "does not predict"
    text = (
        f"The signal that each method leaves, computed without training from the rewards of {times.iloc[0]} models, "
        f"{answer} which method gains: its rank correlation with the gains in sampled accuracy is "
        f"{agreed.correlation:.2f} (approximate interval {agreed.low:.2f} to {agreed.high:.2f}, "
        f"{wording.count(agreed.cells, 'cell')})"
    )
    if agreed.decided:
        text += f"; of {wording.count(agreed.decided, 'gain')} that can be told from 0, {agreed.right} have its sign"
    return f"{text}.".replace(" -", " −")
