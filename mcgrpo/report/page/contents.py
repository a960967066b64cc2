"""Tables and figures of the page: title, caption, n, sources, and files to download."""

import base64
import re
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from mcgrpo.report import answer, wording
from mcgrpo.report.answer import Answer
from mcgrpo.report.catalogue import FIGURES
from mcgrpo.report.shown import select
from mcgrpo.report.tables import accuracy, signal, timings
from mcgrpo.report.tables.display import Display, Entry
from mcgrpo.report.tables.markdown import markdown
from mcgrpo.report.tables.write import displays
from mcgrpo.study.methods import UNTRAINED

TITLES = {
    "answer": "MC-GRPO against GRPO+1 and GRPO",
    "main": "GRPO: mean against median",
    "dapo": "DAPO: mean against median",
    "dr_grpo": "DR-GRPO: mean against median",
    "ood": "Out of distribution",
    "composite": "Composite reward",
    "control": "Median, or one rollout more?",
    "injected-flips": "Injected sign flips",
    "variants": "Variants",
    "rivals": "Rivals",
    "stability": "Stability",
    "sign-flips": "Measured sign-flip rates",
    "timings": "Training time",
    "signal": "Computed signal",
}
SCALE = 0.42
"""CSS pixels per figure pixel. Figures have 300 pixels per inch: 8 point type is then 14 CSS pixels high."""
CAPTION = re.compile(r"\*\*(.+?)\*\*\s+(.+)", re.DOTALL)


@dataclass(frozen=True)
class TableView:
    """One table, and its cells as files to download.

    `rows` has for each line the entries of its block that start there (each with the number of lines that it spans),
    the other entries, whether it is shaded, and whether a rule is above.
    """

    table: Display
    title: str
    n: str
    rows: tuple[tuple[list[tuple[str, int]], tuple[Entry, ...], bool, bool], ...]
    csv: str
    markdown: str


@dataclass(frozen=True)
class FigureView:
    """One figure; a missing one has an empty `image`."""

    name: str
    title: str
    caption: str
    n: str
    image: str
    size: tuple[int, int]
    sources: tuple[str, ...]


def table_views(summary: pd.DataFrame) -> list[TableView]:
    """Every planned table, in the order of tables.md, without the training times."""
    return [view(cells, table) for cells, table in displays(summary)]


def answer_view(found: Answer) -> TableView | None:
    """The answer, if the study compares what it is about; its sentences stand above it."""
    rows = [row for part in (*found.parts, *found.beside) for row in part.rows.values()]
    if not rows:
        return None
    seeds = wording.counts([row.seeds or 0 for row in rows], "seed")
    return view(pd.DataFrame(rows), replace(answer.display(found), caption=found.about), seeds)


def timings_view(summary: pd.DataFrame) -> TableView | None:
    """The training times, if any are planned."""
    cells = timings.select(summary)
    return None if cells.empty else view(cells, timings.display(cells))


def signal_view(signals: pd.DataFrame) -> TableView | None:
    """The computed signal, if the study has rollouts to compute it from."""
    rows = signal.select(signals)
    if rows.empty:
        return None
    measured = rows[~signal.is_along(rows)]
    prompts = wording.span(measured.groupby("source").prompts.first())
    return view(rows, signal.display(rows), f"{wording.count(measured.source.nunique(), 'model')}, {prompts} prompts")


def view(cells: pd.DataFrame, table: Display, n: str = "") -> TableView:
    """A table, and its cells as files to download; `n` by default that of cells with seeds and problems."""
    return TableView(
        table=table,
        title=TITLES.get(table.name, table.name),
        n=n or sizes(cells),
        rows=tuple(_rows(table)),
        csv=_data("text/csv", cells.to_csv(index=False, lineterminator="\n")),
        markdown=_data("text/markdown", markdown(table) + "\n"),
    )


def sizes(cells: pd.DataFrame) -> str:
    """The n of what is shown: seeds of each trained cell, and problems of each benchmark."""
    rows = list(cells.itertuples())
    trained = [row for row in rows if row.method != UNTRAINED]
    parts = [f"{accuracy.seeds(trained)} of each trained cell"] if trained else ["untrained models alone"]
    tested = [row for row in rows if row.role != "train"]
    return "; ".join([*parts, *([accuracy.problems(tested)] if tested else [])])


def _rows(table: Display):
    """The `rows` of a `TableView`."""
    starts = table.starts
    for number, line in enumerate(table.lines):
        below = np.vstack([starts[number + 1 :], [True] * len(line.block)])
        spans = 1 + below.argmax(axis=0)
        heads = [(line.block[at], int(spans[at])) for at in np.flatnonzero(starts[number])]
        yield heads, line.entries, line.shaded, number > 0 and bool(starts[number, : table.ruled].any())


def _data(kind: str, text: str) -> str:
    return f"data:{kind};charset=utf-8,{quote(text)}"


def figure_views(names: list[str], folder: Path, captions: Path, frames: dict[str, pd.DataFrame]) -> list[FigureView]:
    """The named figures, embedded; `captions` has NAME.rst with a bold title before each caption.

    Args:
        names: keys of `mcgrpo.report.catalogue.FIGURES`.
        folder: where NAME.png are.
        captions: the folder of captions.
        frames: `summary` (rows of `Cell`), `gains` (of `Gain`), `curves` (of `CurvePoint`) and
            `signal_curves` (of `SignalPoint`).

    Raises:
        ValueError: names the file of a missing caption.
    """
    return [
        FigureView(name, *_caption(captions / f"{name}.rst"), _figure_n(name, **frames),
                   *_image(folder / f"{name}.png"), FIGURES[name].sources)
        for name in names
    ]  # fmt: skip


def _caption(path: Path) -> tuple[str, str]:
    match = CAPTION.fullmatch(path.read_text(encoding="utf-8").strip()) if path.is_file() else None
    if match is None:
        raise ValueError(f"{path}: no caption of the form '**Title.** Text'")
    return match[1].rstrip("."), " ".join(match[2].split())


def _image(path: Path) -> tuple[str, tuple[int, int]]:
    """The figure as a data URI, and its width and height in CSS pixels, from the header of the PNG."""
    if not path.is_file():
        return "", (0, 0)
    content = path.read_bytes()
    width, height = (round(pixels * SCALE) for pixels in struct.unpack(">II", content[16:24]))
    return f"data:image/png;base64,{base64.b64encode(content).decode()}", (width, height)


def _figure_n(name: str, **frames: pd.DataFrame) -> str:
    """The n of what a figure shows, see `mcgrpo.report.shown`."""
    sources = FIGURES[name].sources
    try:
        rows = select(name, (frames[source] for source in sources))
    except ValueError:
        return "nothing measured yet"
    if "signal_curves" in sources:
        return f"computed from the rewards of {rows.source.iloc[0]}"
    return _runs(rows) if "curves" in sources else sizes(rows)


def _runs(curves: pd.DataFrame) -> str:
    """The n of trainings: runs, seeds of each cell, and steps of each run."""
    runs = curves.groupby(["setting", "method", "num_generations", "seed"]).step.count()
    seeds = runs.groupby(level=[0, 1, 2]).count()
    parts = wording.count(len(runs), "run"), f"{wording.counts(seeds, 'seed')} a cell", wording.counts(runs, "step")
    return f"{', '.join(parts)} each"
