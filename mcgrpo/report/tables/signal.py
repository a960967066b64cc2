r"""The table of computed signal, with the predicted beside the measured gain of each cell, from signals.csv.

    python -m mcgrpo.report.tables.signal --signals signals.csv --output reports [--title "Mini study"]

writes signal.tex and signal.md. It is apart from the other tables, as those do not need the rollouts that it rests on.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import CellSignal
from mcgrpo.analyse.signal_agreement import agreement
from mcgrpo.files import write_text
from mcgrpo.report import wording
from mcgrpo.report.tables.display import TONES, Display, Entry, Line
from mcgrpo.report.tables.latex import PREAMBLE, latex
from mcgrpo.report.tables.markdown import markdown
from mcgrpo.report.tables.rows import as_first_seen, ordered
from mcgrpo.study.methods import UNTRAINED, is_median, label, method_order
from mcgrpo.study.variants import DEFAULT

NAME, UNTRAINED_MODEL = "signal", "untrained"
ABSENT = "No model has the many rollouts per prompt from which signal is computed."
HEADINGS = (
    "Rewards of", "G", "Method", "Drawn", "Per rollout", "Of the best", "Compared with", "Predicted",
    "Along a training", "Measured",
)  # fmt: skip
CELL = ["setting", "method", "num_generations", "variant"]


def select(signals: pd.DataFrame) -> pd.DataFrame:
    """Methods, and variants with an estimator of their own: by model, G, method, variant."""
    signals = signals[(signals.variant == DEFAULT) | signals.predicted.notna()]
    return ordered(
        signals,
        source=as_first_seen(signals.source, signals.source),
        budget=signals.num_generations,
        other=signals.variant != DEFAULT,
        method=signals.method.map(method_order),
        variant=signals.variant,
    )


def display(signals: pd.DataFrame) -> Display:
    """The selected rows as they are printed, a block for each model and G; those along a training as a column."""
    along = is_along(signals)
    later = {cell: [percent(each) for each in rows.predicted] for cell, rows in signals[along].groupby(CELL)}
    lines = tuple(
        Line((source(row), str(row.num_generations)), tuple(_entries(row, later)), is_median(row.method))
        for row in signals[~along].itertuples()
    )
    return Display(NAME, _caption(signals), HEADINGS, lines)


def is_along(signals: pd.DataFrame) -> pd.Series:
    """Whether rows are of the steps of trainings, and not of a model's own many rollouts."""
    return signals.source.map(time).str.startswith("steps ")


def time(source: str) -> str:
    """When the rewards of a source were drawn: `untrained`, `trained`, or the steps of trainings."""
    _, method, _, _, last = source.rsplit("/", 4)
    return last if last.startswith("steps ") else UNTRAINED_MODEL if method == UNTRAINED else "trained"


def percent(share: float) -> str:
    """A predicted gain; empty if there is none."""
    return "" if pd.isna(share) else f"{round(100 * share):+d}%".replace("-", "−")


def source(row: Any) -> str:
    """The setting and model whose rewards these are, with its mean success rate."""
    _, method, budget, variant, seed = row.source.rsplit("/", 4)
    name = UNTRAINED_MODEL if method == UNTRAINED else f"{label(method)} {budget} {seed}"
    name += "" if variant == DEFAULT else f" {variant}"
    return f"{row.setting}, {name} ({wording.percent(row.success)}%)"


def _entries(row: Any, later: Mapping[tuple, Sequence[str]]) -> Iterable[Entry]:
    yield Entry(label(row.method) if row.variant == DEFAULT else f"{label(row.method)}, {row.variant}")
    yield Entry(str(row.drawn))
    yield Entry(f"{1000 * row.per_rollout:.3g}")
    yield Entry(wording.percent(row.of_best, 0))
    if pd.isna(row.predicted):
        yield from [Entry("")] * 4
        return
    yield Entry(label(row.baseline) if row.kind == "difference" else row.baseline)
    yield Entry(percent(row.predicted))
    yield Entry(", ".join(later.get(tuple(getattr(row, key) for key in CELL), ())))
    yield Entry(wording.signed(row.gain, row.gain_low, row.gain_high), TONES.get(row.gain_verdict, ""))


def _caption(signals: pd.DataFrame) -> str:
    along = is_along(signals)
    prompts = wording.span(signals[~along].groupby("source").prompts.first())
    times = ", ".join(dict.fromkeys(map(time, signals[along].source)))
    during = (
        f"Along a training: the same at the pass rates of GRPO's groups at the largest G, {times}. " if times else ""
    )
    return (
        "Computed signal of each method at the rewards that a model of this study gets. Per rollout: squared signal to "
        "noise of a step over the rollouts drawn, in thousandths; of the best: in percent of that with the expected "
        "reward as the baseline. Predicted: signal to noise of a step over that of the method or variant compared "
        "with. Measured: paired gain in sampled accuracy after the training, in points, with its 95% interval. "
        f"Rewards: of {prompts} prompts. {during}{agreements(signals)}"
    ).strip()


def agreements(signals: pd.DataFrame) -> str:
    """The rank correlation over all cells at each time, and whether signal predicts; empty without any."""
    by_time = {name: agreement(rows) for name, rows in signals.groupby(signals.source.map(time), sort=False)}
    found = {name: each for name, each in by_time.items() if each.correlation is not None}
    texts = [
        f"{each.correlation:.2f} [{each.low:.2f}, {each.high:.2f}] ({name}, {wording.count(each.cells, 'cell')})"
        for name, each in found.items()
    ]
    if not texts:
        return ""
    first = next(iter(found.values()))
    answer = "predicts" if first.low > 0 else "does not predict"
    about = "with an approximate interval, which takes cells as independent and errs in up to 8% of studies"
    return (
        f"Rank correlation of predicted and measured gains, {about}: {'; '.join(texts)}. By the first of these, the "
        f"computed signal {answer} which method gains.".replace(" -", " −").replace("[-", "[−")
    )


def main(arguments: list[str] | None = None) -> None:
    """Write the table of computed signal."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--signals", required=True, help="signals.csv, one CellSignal a row")
    parser.add_argument("--output", required=True, type=Path, help="folder for signal.tex and signal.md")
    parser.add_argument("--title", default="", help="what the caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        signals = select(read_frame(options.signals, CellSignal))
    table = None if signals.empty else display(signals).titled(options.title)
    texts = {
        "signal.tex": f"{PREAMBLE}\n\n{latex(table)}\n" if table else f"% {ABSENT}\n",
        "signal.md": f"{markdown(table)}\n" if table else f"{ABSENT}\n",
    }
    for name, text in texts.items():
        write_text(options.output / name, text)


if __name__ == "__main__":
    main()
