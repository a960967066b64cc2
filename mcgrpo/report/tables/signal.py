"""The table of computed signal, with the predicted beside the measured gain of each cell, from signals.csv."""

from typing import Any

import pandas as pd

from mcgrpo.analyse.signal_agreement import agreement
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import UNTRAINED, label, method_order
from mcgrpo.study.variants import DEFAULT

ABSENT = "No model has the many rollouts per prompt from which signal is computed."
UNTRAINED_SOURCE = "untrained"
"""What `time` says of the model before training."""
TEXT = (
    "Computed signal of each method at the rewards that a model of this study gets. Per rollout: squared signal to "
    "noise of a step over the rollouts drawn, in thousandths; of the best: in percent of that with the expected "
    "reward as the baseline. Predicted: signal to noise of a step over that of the method or variant compared "
    "with. Measured: paired gain in sampled accuracy after the training, in points, with its 95% interval; "
    "the word is corrected for the number of comparisons, the interval is not. "
)


def table(signals: pd.DataFrame) -> Table | None:
    """Methods, and variants with an estimator of their own, by model and G; predictions along a training as a column.

    None if there are no rollouts of a model that the study trains to compute signal from.
    """
    signals = signals[(signals.variant == DEFAULT) | signals.predicted.notna()]
    if signals.empty or signals.source.map(time).str.startswith("steps ").all():
        return None
    rows = ordered(
        signals,
        source=signals.source.factorize()[0],
        budget=signals.num_generations,
        other=signals.variant != DEFAULT,
        method=signals.method.map(method_order),
        variant=signals.variant,
    )
    times = rows.source.map(time)
    along = times.str.startswith("steps ")
    later = rows[along].groupby([*CELL]).predicted.agg(lambda shares: ", ".join(map(percent, shares))).to_dict()
    frame = pd.DataFrame([_line(row, later) for row in rows[~along].itertuples()])
    prompts = wording.span(rows[~along].groupby("source").prompts.first())
    names = ", ".join(dict.fromkeys(times[along]))
    during = f"Along a training: the same at the pass rates of GRPO's groups at the largest G, {names}. "
    caption = f"{TEXT}Rewards: of {prompts} prompts. {during if names else ''}{agreements(rows)}".strip()
    return Table("signal", caption, frame, 2, rows)


def time(source: str) -> str:
    """When the rewards of a source were drawn: `untrained`, `trained`, or the steps of trainings."""
    _, method, _, _, last = source.rsplit("/", 4)
    return last if last.startswith("steps ") else UNTRAINED_SOURCE if method == UNTRAINED else "trained"


def percent(share: float) -> str:
    """A predicted gain; empty if there is none."""
    return "" if pd.isna(share) else f"{wording.number(share, 'points', 0)}%"


def source(row: Any) -> str:
    """The setting and model whose rewards these are, with its mean success rate."""
    _, method, budget, variant, seed = row.source.rsplit("/", 4)
    name = "untrained" if method == UNTRAINED else f"{label(method)} {budget} {seed}"
    name += "" if variant == DEFAULT else f" {variant}"
    return f"{row.setting}, {name} ({wording.number(row.success, 'percent')}%)"


def _line(row: Any, later: dict[tuple, str]) -> dict[str, Any]:
    compared, method = pd.notna(row.predicted), label(row.method)
    gain = wording.printed(row.gain, row.gain_low, row.gain_high, verdict=row.gain_verdict)
    return {
        "Rewards of": source(row),
        "G": str(row.num_generations),
        "Method": method if row.variant == DEFAULT else f"{method}, {row.variant}",
        "Drawn": str(row.drawn),
        "Per rollout": f"{1000 * row.per_rollout:.3g}",
        "Of the best": wording.number(row.of_best, "percent", 0),
        "Compared with": (label(row.baseline) if row.kind == "difference" else row.baseline) if compared else "",
        "Predicted": percent(row.predicted),
        "Along a training": later.get(tuple(getattr(row, key) for key in CELL), "") if compared else "",
        "Measured": gain if compared else "",
    }


def agreements(signals: pd.DataFrame) -> str:
    """The rank correlation over all cells at each time, and whether signal predicts; empty without any."""
    by_time = {name: agreement(rows) for name, rows in signals.groupby(signals.source.map(time), sort=False)}
    found = {name: each for name, each in by_time.items() if each.correlation is not None}
    texts = [
        f"{each.correlation:.2f} [{each.low:.2f}, {each.high:.2f}] ({name}, {each.predictions} predictions)"
        for name, each in found.items()
    ]
    if not texts:
        return ""
    text = (
        "Rank correlation of predicted and measured gains, with an approximate interval, which takes predictions as "
        f"independent: {'; '.join(texts)}.".replace(" -", " −").replace("[-", "[−")
    )
    if UNTRAINED_SOURCE not in found:
        return text
    answer = "predicts" if found[UNTRAINED_SOURCE].low > 0 else "is not shown to predict"
    return f"{text} Computed before any training, the signal {answer} which method gains."
