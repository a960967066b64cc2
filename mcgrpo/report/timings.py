"""The measured training times of a study, a row per setting and G, a column per method."""

import pandas as pd

from mcgrpo.frames import method_order
from mcgrpo.report import wording
from mcgrpo.report.render import FLOAT
from mcgrpo.variants import DEFAULT


def timings(summary: pd.DataFrame) -> pd.DataFrame:
    """Mean wall-clock seconds of a training job as text; "missing" for a cell that was not run."""
    chosen = (summary.role == "train") & (summary.measure == "seconds") & (summary.variant == DEFAULT)
    cells = summary[chosen]
    wide = cells.pivot(index=["setting", "num_generations"], columns="method", values="mean")
    wide = wide[sorted(wide.columns, key=method_order)].sort_index(ascending=[True, False])
    shown = wide.map(wording.seconds).rename(columns=wording.label).reset_index()
    return shown.rename(columns={"setting": "Setting", "num_generations": "G"}).rename_axis(columns=None)


def caption(title: str) -> str:
    """What the table shows."""
    text = "Training time: wall-clock seconds of a training job, mean over its seeds, on the machine of this study."
    return f"{title}. {text}" if title else text


def timings_markdown(shown: pd.DataFrame, title: str) -> str:
    """The table as Markdown."""
    return f"## timings\n\n{caption(title)}\n\n{shown.to_markdown(index=False, disable_numparse=True)}"


def timings_latex(shown: pd.DataFrame, title: str) -> str:
    """The table as a LaTeX float."""
    style = shown.style.hide(axis="index").format(escape="latex")
    tabular = style.to_latex(hrules=True, column_format="lr" + "r" * (shown.shape[1] - 2)).strip()
    return FLOAT % {"caption": wording.escape_latex(caption(title)), "label": "tab:timings", "tabular": tabular}
