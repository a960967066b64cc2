r"""Numbers for prose: \Value{key} in LaTeX prints the number of a key, or "missing" for an unknown key.

Keys (those of `study/` and `runs/` apart) end in a cell, SETTING/BENCHMARK/METHOD/G{G}/MEASURE, as in
`gain/toy-qwen3/two-step/mc-grpo/G2/greedy`; a variant other than `default` comes before the measure. MEASURE is
`greedy`, `sampled` (the largest avg@k), or the measure of a sign-flip rate.

    study/title               the title of the study
    runs/planned, finished    trainings, and those that have been evaluated
    seeds/planned             seeds per cell: "5", "3 to 5"
    mean/CELL                 in percent; mean-interval/CELL: "[low, high]"; both: "86.4 [85.1, 87.7]"
    gain/CELL                 paired difference to the mean-centred method, in points; gain-interval/CELL
    gain-verdict/CELL         better, worse, equivalent or inconclusive
    gain-detectable/CELL      the smallest detectable gain, in points
    gain-seeds/CELL           the gain of each seed: "+1.4, −7.9"
    change/CELL               paired difference to the variant default, in points; change-interval/CELL,
                              change-verdict/CELL, change-detectable/CELL and change-seeds/CELL as of gains
    published/CELL            the paper's number in percent; published-gain/CELL in points, and
                              published-gain-excluded/CELL whether our interval excludes it: yes or no
    n/CELL, seeds/CELL        problems; seeds as tables have them, "5" or "3/5"

A missing number has no entry. There are no times, so that repeating a study gives the same file.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import accuracies, seed_gains
from mcgrpo.records import CELL
from mcgrpo.report import wording
from mcgrpo.report.tables import flip_rates
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.variants import DEFAULT

HEAD = r"""% \Value{key} prints a number of this study, or "missing"; keys: mcgrpo/report/tables/values.py.
\providecommand{\Value}[1]{\ifcsname value:#1\endcsname\csname value:#1\endcsname\else\textit{missing}\fi}
\providecommand{\DefineValue}[2]{\expandafter\gdef\csname value:#1\endcsname{#2}}"""


def values(summary: pd.DataFrame, gains: pd.DataFrame, title: str) -> str:
    """The whole of values.tex."""
    lines = [rf"\DefineValue{{{key}}}{{{wording.escape_latex(text)}}}" for key, text in entries(summary, gains, title)]
    return "\n".join([HEAD, *lines]) + "\n"


def entries(summary: pd.DataFrame, gains: pd.DataFrame, title: str) -> Iterator[tuple[str, str]]:
    """Every key with its plain text, in a fixed order."""
    yield "study/title", title
    inside, outside = (accuracies(summary, role, variant=None) for role in ("in", "out"))
    yield from _counts(inside)
    for cells in (inside, outside):
        for cell in cells.itertuples():
            yield from _cell(cell, CellKey.of(cell)._replace(measure=cell.decoding), gains)
    for cell in flip_rates.select(summary).itertuples():
        yield from _cell(cell, CellKey.of(cell), gains)


def _counts(cells: pd.DataFrame) -> Iterator[tuple[str, str]]:
    trained = cells[cells.method != UNTRAINED]
    if trained.empty:
        return
    jobs = trained.groupby([*CELL]).agg({"planned": "max", "seeds": "min"})
    yield "runs/planned", str(jobs.planned.sum())
    yield "runs/finished", str(jobs.seeds.sum())
    yield "seeds/planned", wording.span(jobs.planned)


def _name(key: CellKey) -> str:
    variant = [] if key.variant == DEFAULT else [key.variant]
    return "/".join([key.setting, key.benchmark, key.method, f"G{key.num_generations}", *variant, key.measure])


def _cell(cell: Any, key: CellKey, gains: pd.DataFrame) -> Iterator[tuple[str, str]]:
    name = _name(key)
    yield f"seeds/{name}", wording.seeds(cell.seeds, cell.planned)
    if pd.notna(cell.n):
        yield f"n/{name}", str(cell.n)
    if pd.notna(cell.published):
        yield f"published/{name}", wording.percent(cell.published, 2)
    if pd.notna(cell.published_difference):
        yield f"published-gain/{name}", wording.points(cell.published_difference, 2)
    if pd.notna(cell.mean):
        yield from _number("mean", name, (cell.mean, cell.low, cell.high), wording.percent)
        yield f"both/{name}", wording.accuracy(cell.mean, cell.low, cell.high)
    if pd.notna(cell.difference_excludes_published):
        yield f"published-gain-excluded/{name}", "yes" if cell.difference_excludes_published else "no"
    for kind, field in (("gain", "difference"), ("change", "change")):
        if pd.notna(getattr(cell, field)):
            yield from _paired(kind, field, name, cell)
            yield f"{kind}-seeds/{name}", ", ".join(map(wording.points, seed_gains(gains, cell, field)))


def _paired(kind: str, field: str, name: str, cell: Any) -> Iterator[tuple[str, str]]:
    bounds = tuple(getattr(cell, field + part) for part in ("", "_low", "_high"))
    yield from _number(kind, name, bounds, wording.points)
    if pd.notna(word := getattr(cell, f"{field}_verdict")):
        yield f"{kind}-verdict/{name}", word
    if pd.notna(seen := getattr(cell, f"{field}_detectable")):
        yield f"{kind}-detectable/{name}", wording.percent(seen)


def _number(kind: str, name: str, bounds: tuple, spell: Any) -> Iterator[tuple[str, str]]:
    value, low, high = bounds
    yield f"{kind}/{name}", spell(value)
    if pd.notna(low):
        yield f"{kind}-interval/{name}", f"[{spell(low)}, {spell(high)}]"
