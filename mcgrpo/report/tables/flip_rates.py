"""The table of sign-flip rates: how often a baseline over k rollouts gives an advantage the wrong sign.

Rates are in percent of the rollouts, by convention (what counts as a flip) and oracle (the baseline over all rollouts
that gives the true sign).
"""

import pandas as pd

from mcgrpo.analyse.records import ASKED_TOKENS, FIT_TOKENS
from mcgrpo.analyse.sign_flips import BASELINES, CONVENTIONS, ORACLES, FlipMeasure, parse_measure
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import limits, ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import label

TEXT = (
    "Sign-flip rate in percent: the share of rollouts whose advantage has another sign over k rollouts than over all "
    "rollouts of its prompt (the oracle). Strict: + against −; zeros: zero is a sign of its own. Over every subset "
    "of k rollouts; the paper draws 20. A baseline -plus1 is that of k+1 rollouts, of which the closest to it is "
    "dropped. Each rate"
)
LINE = ["setting", "benchmark", "method", "num_generations", "variant", "convention", "oracle", "centre"]
HEADINGS = ["Setting", "Benchmark", "Model", "Convention", "Oracle", "Baseline"]


def select(summary: pd.DataFrame) -> pd.DataFrame:
    """The cells of role `flips`, with the parts of their measure (its baseline as `centre`) as columns.

    Settings and models as the summary has them; conventions, oracles and baselines as `mcgrpo.analyse.sign_flips` does.
    """
    cells = summary[(summary.role == "flips") & ~summary.measure.isin([FIT_TOKENS, ASKED_TOKENS])]
    parts = pd.DataFrame(map(parse_measure, cells.measure), index=cells.index, columns=FlipMeasure._fields)
    parts = parts.rename(columns={"baseline": "centre"})
    return ordered(
        cells.join(parts),
        model=pd.MultiIndex.from_frame(cells[LINE[:5]]).factorize()[0],
        convention=parts.convention.map(CONVENTIONS.index),
        oracle=parts.oracle.map(ORACLES.index),
        centre=parts.centre.map(BASELINES.index),
        k=parts.k,
    )


def table(summary: pd.DataFrame) -> Table | None:
    """A line for each baseline, a column for each k; blank where a rate is not defined."""
    cells = select(summary)
    if cells.empty:
        return None
    sizes, lines = sorted(set(cells.k)), []
    for (setting, benchmark, method, budget, _, convention, oracle, centre), rows in cells.groupby(LINE, sort=False):
        model = label(method) + (f" G={budget}" if budget else "")
        names = (setting, benchmark, model, convention, oracle.removeprefix("oracle-"), centre)
        there = {row.k: (row.mean, row.low, row.high, "percent") for row in rows.itertuples()}
        rates = {f"k={k}": wording.printed(*there[k]) if k in there else "" for k in sizes}
        lines.append(dict(zip(HEADINGS, names, strict=True)) | rates)
    caption = f"{TEXT}{wording.intervals(cells)}; {wording.sizes(cells)}."
    return Table("sign-flips", f"{caption} {limits(summary, cells)}".strip(), pd.DataFrame(lines), 5, cells)
