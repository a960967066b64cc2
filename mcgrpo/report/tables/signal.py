r"""The table of computed signal, with the predicted beside the measured gain of each cell, from signals.csv.

    python -m mcgrpo.report.tables.signal --signals signals.csv --output reports [--title "Mini study"]

writes signal.tex and signal.md. It is apart from the other tables, as those do not need the rollouts that it rests on.
"""

from collections.abc import Iterable
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

NAME = "signal"
ABSENT = "No model has the many rollouts per prompt from which signal is computed."
HEADINGS = (
    "Rewards of", "G", "Method", "Drawn", "Per rollout", "Of the best", "Compared with", "Predicted", "Measured",
)  # fmt: skip


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
    """The selected rows as they are printed, a block for each model and G."""
    lines = tuple(
        Line((source(row), str(row.num_generations)), tuple(_entries(row)), is_median(row.method))
        for row in signals.itertuples()
    )
    return Display(NAME, _caption(signals), HEADINGS, lines)


def source(row: Any) -> str:
    """The setting and model whose rewards these are, with its mean success rate."""
    _, method, budget, variant, seed = row.source.rsplit("/", 4)
    name = "untrained" if method == UNTRAINED else f"{label(method)} {budget} {seed}"
    name += "" if variant == DEFAULT else f" {variant}"
    return f"{row.setting}, {name} ({wording.percent(row.success)}%)"


def _entries(row: Any) -> Iterable[Entry]:
    yield Entry(label(row.method) if row.variant == DEFAULT else f"{label(row.method)}, {row.variant}")
    yield Entry(str(row.drawn))
    yield Entry(f"{1000 * row.per_rollout:.3g}")
    yield Entry(wording.percent(row.of_best, 0))
    if pd.isna(row.predicted):
        yield from (Entry(""), Entry(""), Entry(""))
        return
    yield Entry(label(row.baseline) if row.kind == "difference" else row.baseline)
    yield Entry(f"{round(100 * row.predicted):+d}%".replace("-", "−"))
    yield Entry(wording.signed(row.gain, row.gain_low, row.gain_high), TONES.get(row.gain_verdict, ""))


def _caption(signals: pd.DataFrame) -> str:
    prompts = wording.span(signals.groupby("source").prompts.first())
    return (
        "Computed signal of each method at the rewards that a model of this study gets. Per rollout: squared signal to "
        "noise of a step over the rollouts drawn, in thousandths; of the best: in percent of that with the expected "
        "reward as the baseline. Predicted: signal to noise of a step over that of the method or variant compared "
        "with. Measured: paired gain in sampled accuracy after the training, in points, with its 95% interval. "
        f"Rewards: of {prompts} prompts. {_agreements(signals)}"
    ).strip()


def _agreements(signals: pd.DataFrame) -> str:
    """The rank correlation of each source; empty without any."""
    by_source = {source(rows.iloc[0]): agreement(rows) for _, rows in signals.groupby("source", sort=False)}
    texts = [
        f"{each.correlation:.2f} [{each.low:.2f}, {each.high:.2f}] ({name}, {wording.count(each.cells, 'cell')})"
        for name, each in by_source.items()
        if each.correlation is not None
    ]
    about = "with an approximate interval, which takes cells as independent and errs in up to 8% of studies"
    return f"Rank correlation of predicted and measured gains, {about}: {'; '.join(texts)}." if texts else ""


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
