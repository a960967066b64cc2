"""Does a training solve more, or say surer what the model could do: pass@k beside accuracy and entropy."""

from typing import Any

import pandas as pd

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import accuracies
from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import UNTRAINED, label, method_order
from mcgrpo.study.variants import DEFAULT

CAPTION = (
    "Sharpening or solving (Yue et al. 2025, arXiv 2504.13837). Sampled: the mean accuracy of {n} samples, which is "
    "pass@1; pass@k: the share of problems that k samples solve, estimated without bias from the {n}. A "
    "training that only sharpens raises the first and not the last. Entropy: of a token of the rollouts, mean over the "
    "first and the last tenth of the steps, in nats. Of {sizes}."
)


def table(summary: pd.DataFrame) -> Table | None:
    """A block for each G under the variant `default`, in distribution; None if the study has no pass@k."""
    cells = accuracies(summary, "in")
    cells = cells[cells.decoding == "sampled"]
    several = summary.measure.str.startswith("pass@").any()
    if not several or cells[cells.method != UNTRAINED].empty:
        return None
    cells = ordered(
        cells,
        setting=cells.setting.factorize()[0],
        benchmark=cells.benchmark.factorize()[0],
        budget=cells.num_generations,
        method=cells.method.map(method_order),
    )
    known = {CellKey.of(row): row for row in summary[summary.variant == DEFAULT].itertuples()}
    n = cells.measure.iloc[0].partition("@")[2]
    caption = CAPTION.format(n=n, sizes=wording.sizes(cells))
    return Table("sharpening", caption, pd.DataFrame([_row(row, known) for row in cells.itertuples()]), 3, cells)


def _row(cell: Any, known: dict[CellKey, Any]) -> dict[str, Any]:
    key, n = CellKey.of(cell), int(cell.measure.partition("@")[2])

    def percent(measure: str) -> Any:
        row = known.get(key._replace(measure=measure))
        return wording.printed(row.mean, row.low, row.high, "percent") if row else wording.MISSING

    def entropy(end: str) -> str:
        row = known.get(key.of_training(f"entropy_{end}"))
        if cell.method == UNTRAINED:
            return ""
        return wording.MISSING if row is None or pd.isna(row.mean) else f"{row.mean:.3f}"

    middle = [k for k in (8,) if k < n]
    return {
        "Setting": cell.setting,
        "Benchmark": cell.benchmark,
        "G": wording.rollouts(cell.num_generations, None),
        "Method": label(cell.method),
        "Greedy (%)": percent("greedy"),
        "Sampled (%)": percent(cell.measure),
        **{f"pass@{k} (%)": percent(f"pass@{k}") for k in (*middle, n)},
        "Entropy, first": entropy("first"),
        "Entropy, last": entropy("last"),
        "Seeds": wording.seeds(cell.seeds, cell.planned),
    }
