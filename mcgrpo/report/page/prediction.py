"""One sentence of the first screen: whether computed signal says which method gains."""

import pandas as pd

from mcgrpo.analyse.signal_agreement import agreement
from mcgrpo.report import wording
from mcgrpo.report.shown import first_source
from mcgrpo.report.tables.signal import source


def sentence(signals: pd.DataFrame) -> str:
    """How computed signal and measured gains agree; empty without a rank correlation.

    Args:
        signals: a row per `CellSignal`.
    """
    if signals.empty:
        return ""
    first = first_source(signals)
    agreed = agreement(first)
    if agreed.correlation is None:
        return ""
    text = (
        "The signal that each method leaves, computed without training from the rewards of "
        f"{source(first.iloc[0])}, has a rank correlation of {agreed.correlation:.2f} with the measured gains in "
        f"sampled accuracy (approximate interval {agreed.low:.2f} to {agreed.high:.2f}, "
        f"{wording.count(agreed.cells, 'cell')})"
    )
    if agreed.decided:
        text += f"; of {wording.count(agreed.decided, 'gain')} that can be told from 0, {agreed.right} have its sign"
    return f"{text}.".replace(" -", " −")
