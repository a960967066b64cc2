"""The table of sign-flip rates: how often a baseline over k rollouts gives an advantage the wrong sign.

Rates are in percent of the rollouts, by convention (what counts as a flip) and oracle (the baseline over all rollouts
that gives the true sign). Each exact rate has the one over the paper's random subsamples beside it.
"""

from collections.abc import Iterable

import pandas as pd

from mcgrpo.analyse.flip_measures import BASELINES, CONVENTIONS, ORACLES, FlipMeasure, parse_measure
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import intervals, problems, seeds
from mcgrpo.report.tables.display import Display, Entry, Line
from mcgrpo.report.tables.rows import ordered
from mcgrpo.study.methods import label

NAME = "sign-flips"
TEXT = (
    "Sign-flip rate in percent: the share of rollouts whose advantage has another sign over k rollouts than over all "
    "rollouts of its prompt (the oracle). Strict: + against −; zeros: zero is a sign of its own. Exact: over every "
    "subset of k; sampled: over random subsets, as in the paper. A baseline -plus1 is that of k+1 rollouts, of which "
    "the closest to it is dropped. Rates"
)
LINE = ["setting", "benchmark", "method", "num_generations", "variant", "convention", "oracle", "centre"]


def select(summary: pd.DataFrame) -> pd.DataFrame:
    """The cells of role `flips`, with the parts of their measure (its baseline as `centre`) as columns.

    Settings and models as the summary has them; conventions, oracles and baselines as `mcgrpo.analyse.sign_flips` does.
    """
    cells = summary[summary.role == "flips"]
    parts = pd.DataFrame(map(parse_measure, cells.measure), index=cells.index, columns=FlipMeasure._fields)
    parts = parts.rename(columns={"baseline": "centre"})
    return ordered(
        cells.join(parts),
        model=pd.Series(pd.factorize(pd.MultiIndex.from_frame(cells[LINE[:5]]))[0], cells.index),
        convention=parts.convention.map(CONVENTIONS.index),
        oracle=parts.oracle.map(ORACLES.index),
        centre=parts.centre.map(BASELINES.index),
        k=parts.k,
        how=parts.how,
    )


def display(cells: pd.DataFrame) -> Display:
    """The selected cells as printed: a line for each baseline, an entry for each k and way of counting."""
    columns = sorted(set(zip(cells.k, cells.how, strict=True)))
    lines = [
        Line(
            (setting, benchmark, _model(method, budget), convention, oracle.removeprefix("oracle-")),
            (Entry(centre), *_rates(rows, columns)),
            shaded=centre.startswith("median"),
        )
        for (setting, benchmark, method, budget, _, convention, oracle, centre), rows in cells.groupby(LINE, sort=False)
    ]
    headings = ("Setting", "Benchmark", "Model", "Convention", "Oracle", "Baseline")
    rows = list(cells.itertuples())
    caption = f"{TEXT}{intervals(rows)}; {problems(rows)}; {seeds(rows)}."
    return Display(NAME, caption, (*headings, *(f"k={k} {how}" for k, how in columns)), tuple(lines))


def _model(method: str, num_generations: int) -> str:
    return label(method) + (f" G={num_generations}" if num_generations else "")


def _rates(rows: pd.DataFrame, columns: list[tuple]) -> Iterable[Entry]:
    """The rates of a line: blank if the baseline is not defined for k, "missing" if it was not measured."""
    cells = {(cell.k, cell.how): cell for cell in rows.itertuples()}
    for column in columns:
        cell = cells.get(column)
        yield Entry(wording.accuracy(cell.mean, cell.low, cell.high) if cell else "")
