"""Training times of a study and the paper's, and their ratio to the mean-centred baseline."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from mcgrpo.report import wording
from mcgrpo.report.tables.accuracy import as_first_seen, ordered
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.methods import METHODS, label, method_order
from mcgrpo.study.variants import DEFAULT

TEXT = (
    "Training time: wall-clock seconds of a training job, mean over its seeds, on the machine of this study, and their "
    "ratio to those of its mean-centred baseline at the same G; none of these has an interval."
)


def table(summary: pd.DataFrame) -> Table | None:
    """A line for each method of the default variant: settings in file order, G descending.

    Published seconds appear only if the paper has any.
    """
    cells = summary[(summary.role == "train") & (summary.measure == "seconds") & (summary.variant == DEFAULT)]
    if cells.empty:
        return None
    setting, method = as_first_seen(cells.setting, cells.setting), cells.method.map(method_order)
    cells = ordered(cells, setting=setting, budget=-cells.num_generations, method=method)
    there = {(row.setting, row.num_generations, row.method): row for row in cells.itertuples()}
    published = bool(cells.published.notna().any())
    lines = [dict(_line(row, there.get((*key[:2], METHODS[key[2]].baseline)), published)) for key, row in there.items()]
    caption = f"{TEXT} Published: the paper's, on its machine." if published else TEXT
    return Table("timings", caption, pd.DataFrame(lines), 2, cells)


def _line(row: Any, baseline: Any, published: bool) -> Iterator[tuple[str, str]]:
    yield from (("Setting", row.setting), ("G", str(row.num_generations)), ("Method", label(row.method)))
    fields = (("Published", "published", ""),) if published else ()
    for name, field, nothing in (*fields, ("Ours", "mean", wording.MISSING)):
        ours, base = (getattr(each, field, None) for each in (row, baseline))
        digits = 1 if pd.notna(ours) and ours < 100 else 0
        yield f"{name} (s)", nothing if pd.isna(ours) else f"{ours:.{digits}f}"
        told = pd.notna(ours) and pd.notna(base)
        yield f"{name}, ratio", f"{ours / base:.2f}" if told else nothing if baseline else ""
    yield "Seeds", wording.seeds(row.seeds, row.planned)
