r"""summary.csv to the paper's tables: LaTeX, Markdown, one tidy CSV, and the sentences that say what they show.

    python -m mcgrpo.report.tables --summary summary.csv --output reports [--title "Mini study (toy models)"]

writes tables.tex (to be \input; its first line names the packages), tables.md, tables.csv, headline.md and the
training times, timings.tex and timings.md.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mcgrpo.files import atomic
from mcgrpo.frames import DECODINGS, accuracies, read_frame
from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.records import Cell
from mcgrpo.report.headline import headline
from mcgrpo.report.render import PREAMBLE, latex, markdown
from mcgrpo.report.timings import timings, timings_latex, timings_markdown

BLOCK = ["setting", "benchmark"]
KEY = [*BLOCK, "num_generations", "method"]
FIELDS = ["mean", "low", "high", "difference", "difference_low", "difference_high", "difference_seeds", "seeds", "n"]


@dataclass(frozen=True)
class Table:
    """One table: the methods side by side on benchmarks of a role.

    `only_where` limits it to the settings and G at which that method was run (a control is not run everywhere).
    """

    name: str
    methods: tuple[str, ...]
    caption: str
    role: str = "in"
    only_where: str | None = None


TABLES = (
    Table("main", ("grpo", "mc-grpo"), "GRPO with the mean and the median as the baseline"),
    Table("dapo", ("dapo", "mc-dapo"), "DAPO with the mean and the median as the baseline"),
    Table("dr_grpo", ("dr-grpo", "mc-dr-grpo"), "DR-GRPO with the mean and the median as the baseline"),
    Table("ood", tuple(m for m in METHODS if m != "grpo-plus1"), "Out-of-distribution benchmarks", role="out"),
    Table(
        "control",
        ("grpo", "grpo-plus1", "mc-grpo"),
        "Is it the median or the extra rollout? GRPO+1 draws G+1 rollouts, keeps the mean and drops the rollout of "
        "the smallest advantage; gains are over GRPO",
        only_where="grpo-plus1",
    ),
)


def tidy(table: Table, summary: pd.DataFrame) -> pd.DataFrame:
    """The table's numbers: a row per (setting, benchmark) x (untrained, then G descending x method), NaN if missing.

    Columns are `KEY`, then each of `FIELDS` for each decoding (`greedy_mean`, ..., `sampled_n`) and
    `sampled_measure`. Empty where no method of the table was run.
    """
    cells = accuracies(summary, table.role)
    ours = cells[cells.method.isin(table.methods)]
    if table.only_where:
        marked = ours[ours.method == table.only_where]
        ours = ours[ours.setting.isin(marked.setting) & ours.num_generations.isin(marked.num_generations)]
    grid = _grid(table, ours)
    if grid.empty:
        return pd.DataFrame()
    wide = cells.set_index([*KEY, "decoding"])[FIELDS].astype(float).unstack("decoding")
    wide.columns = [f"{decoding}_{field}" for field, decoding in wide.columns]
    wide = wide.reindex(columns=[f"{decoding}_{field}" for decoding in DECODINGS for field in FIELDS])
    rows = grid.merge(wide, how="left", left_on=KEY, right_index=True).reset_index(drop=True)
    measures = ours[ours.decoding == "sampled"].drop_duplicates(BLOCK)[[*BLOCK, "measure"]]
    return rows.merge(measures.rename(columns={"measure": "sampled_measure"}), how="left", on=BLOCK)


def _grid(table: Table, cells: pd.DataFrame) -> pd.DataFrame:
    budgets = sorted(cells.num_generations.unique(), reverse=True)
    methods = [method for method in table.methods if method in set(cells.method)]
    blocks = sorted(set(zip(cells.setting, cells.benchmark, strict=True)))
    runs = [(0, UNTRAINED), *((g, method) for g in budgets for method in methods)]
    return pd.DataFrame([(*block, *run) for block in blocks for run in runs], columns=KEY)


def write_tables(summary: pd.DataFrame, output: Path, title: str = "") -> None:
    """Write tables.tex, tables.md, tables.csv, headline.md, timings.tex and timings.md into `output`.

    The training times of the paper's main table stand apart, in the timings: they differ from one run of a study to
    the next, and everything else in the tables is the same to the byte.

    Raises:
        ValueError: where the summary holds no accuracy of any table's methods.
    """
    filled = [(table, rows) for table in TABLES if not (rows := tidy(table, summary)).empty]
    if not filled:
        raise ValueError("the summary has no accuracy (greedy or avg@k, variant default) of any trained method")
    empty = ", ".join(table.name for table in TABLES if table.name not in {t.name for t, _ in filled})
    absent = f"Tables without a run in this study: {empty}." if empty else ""
    tex = [latex(table.name, table.caption, rows, title) for table, rows in filled]
    md = [markdown(table.name, table.caption, rows, title) for table, rows in filled]
    _write(output / "tables.tex", "\n\n".join([PREAMBLE + (f"\n% {absent}" if absent else ""), *tex]) + "\n")
    _write(output / "tables.md", "\n\n".join([*md, *([absent] if absent else [])]) + "\n")
    _write(output / "headline.md", headline(summary))
    seconds = timings(summary)
    _write(output / "timings.tex", timings_latex(seconds, title) + "\n")
    _write(output / "timings.md", timings_markdown(seconds, title) + "\n")
    numbers = pd.concat([rows.assign(table=table.name) for table, rows in filled])
    columns = ["table", *(name for name in numbers.columns if name != "table")]
    _write(output / "tables.csv", numbers[columns].to_csv(index=False, lineterminator="\n"))


def _write(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Read the summary, write the tables."""
    parser = argparse.ArgumentParser(description="Write every table of the study.")
    parser.add_argument("--summary", required=True, help="summary.csv, one Cell a row")
    parser.add_argument("--output", required=True, type=Path, help="folder for tables.*, timings.* and headline.md")
    parser.add_argument("--title", default="", help="what every caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    try:
        write_tables(read_frame(options.summary, Cell), options.output, options.title)
    except ValueError as error:
        raise SystemExit(f"tables: {error}") from None


if __name__ == "__main__":
    main()
