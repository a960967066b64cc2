r"""The answer and the paper's tables, from contrasts.csv and summary.csv: LaTeX, Markdown and one tidy CSV.

    python -m mcgrpo.report.tables --plan plan.json --summary summary.csv --contrasts contrasts.csv --output reports

writes tables.tex (to be \input; it names the packages that it needs), tables.md, tables.csv (the cells of every table
but the answer, as in the summary), headline.md (the answer as sentences) and the training times, timings.{tex,md}.
"""

from dataclasses import fields
from pathlib import Path

import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse.frames import read_frame, read_records
from mcgrpo.analyse.records import Cell, Contrast
from mcgrpo.files import read_json, write_text
from mcgrpo.report import answer, wording
from mcgrpo.report.lost import lost
from mcgrpo.report.tables import accuracy, flip_rates, rivals, stability, timings
from mcgrpo.report.tables.display import Display
from mcgrpo.report.tables.latex import PREAMBLE, latex
from mcgrpo.report.tables.markdown import markdown
from mcgrpo.report.tables.rows import Table, as_rows, is_injected, is_other, select
from mcgrpo.study.methods import METHODS
from mcgrpo.study.variants import COMPOSITE

ALL = tuple(METHODS)
TABLES = (
    Table("main", "GRPO with the mean and the median as the baseline", ("grpo", "mc-grpo")),
    Table("dapo", "DAPO with the mean and the median as the baseline", ("dapo", "mc-dapo")),
    Table("dr_grpo", "DR-GRPO with the mean and the median as the baseline", ("dr-grpo", "mc-dr-grpo")),
    Table(
        "ood",
        "Out-of-distribution benchmarks",
        ALL,
        role="out",
        caveat="The paper names neither the model nor the decoding of its numbers here (they stand beside each model); "
        "its released code counts a problem as solved if any of four samples is right.",
    ),
    Table(
        "composite",
        "Composite reward: accuracy and format",
        ALL,
        variants=COMPOSITE.__eq__,
        caveat="The paper's own caption says of its numbers here: “All numbers are placeholders and will be replaced "
        "with actual results.”",
    ),
    Table(
        "control",
        "Is it the median or the extra rollout? GRPO+1 draws G+1 rollouts, keeps the mean and drops the rollout of "
        "the smallest absolute advantage; gains are over GRPO",
        ("grpo", "grpo-plus1", "mc-grpo"),
        only_where="grpo-plus1",
    ),
    Table(
        "injected-flips",
        "Injected sign flips: the sign of each advantage is turned with probability ρ, or (exact) of that share of "
        "every group; ρ = 0 is the variant default",
        ALL,
        variants=is_injected,
        changes=True,
    ),
    Table("variants", "What each variant of the study changes", ALL, variants=is_other, changes=True),
)

OTHERS = (rivals, stability, flip_rates)
"""Modules of the tables that are not lists of accuracies: each has `NAME`, `select` and `display`."""


def displays(summary: pd.DataFrame) -> list[tuple[pd.DataFrame, Display]]:
    """Every planned table: its cells, and the printed table."""
    chosen = ((table, select(table, summary)) for table in TABLES)
    tables = [(cells, accuracy.display(table, as_rows(cells))) for table, cells in chosen if not cells.empty]
    others = ((module, module.select(summary)) for module in OTHERS)
    return tables + [(cells, module.display(cells)) for module, cells in others if not cells.empty]


def write_tables(summary: pd.DataFrame, found: answer.Answer, output: Path, title: str = "") -> None:
    """Write tables.{tex,md,csv}, headline.md and timings.{tex,md} into `output`.

    Training times are in separate files: they differ between repetitions of a study; all else is the same to the byte.

    Raises:
        ValueError: if the study plans none of the tables.
    """
    tables = [(cells, table.titled(title)) for cells, table in displays(summary)]
    if not tables:
        raise ValueError("the summary has neither an accuracy (greedy or avg@k) of a trained method nor sign flips")
    names = {display.name for _, display in tables}
    left = [name for name in (*(table.name for table in TABLES), *(each.NAME for each in OTHERS)) if name not in names]
    absent = f"Tables without a cell in this study: {', '.join(left)}." if left else ""
    shown = [answer.display(found).titled(title)] if found.places else []
    shown += [display for _, display in tables]
    called = rf"\providecommand{{\StudyTitle}}{{{wording.escape_latex(title)}}}"
    tex = [f"{PREAMBLE}\n{called}" + (f"\n% {absent}" if absent else ""), *map(latex, shown)]
    md = [*map(markdown, shown), *([absent] if absent else [])]
    write_text(output / "tables.tex", "\n\n".join(tex) + "\n")
    write_text(output / "tables.md", "\n\n".join(md) + "\n")
    write_text(output / "tables.csv", _tidy(tables).to_csv(index=False, lineterminator="\n"))
    write_text(output / "headline.md", answer.markdown(found, lost(summary)))
    _write_timings(summary, output, title)


def _write_timings(summary: pd.DataFrame, output: Path, title: str) -> None:
    cells = timings.select(summary)
    table = None if cells.empty else timings.display(cells).titled(title)
    absent = "No training time is planned or measured in this study."
    write_text(output / "timings.tex", f"{PREAMBLE}\n\n{latex(table, rows=60)}\n" if table else f"% {absent}\n")
    write_text(output / "timings.md", f"{markdown(table)}\n" if table else f"{absent}\n")


def _tidy(tables: list[tuple[pd.DataFrame, Display]]) -> pd.DataFrame:
    """The cells of all tables, one row each, with the table's name before the columns of `Cell`."""
    columns = ["table", *(field.name for field in fields(Cell))]
    return pd.concat([cells.assign(table=display.name) for cells, display in tables])[columns]


def main(arguments: list[str] | None = None) -> None:
    """Read the summary, write the tables."""
    parser = command_line.parser("Write every table of the study.")
    parser.add_argument("--plan", required=True, type=Path, help="plan.json of the study")
    parser.add_argument("--summary", required=True, help="summary.csv, one Cell a row")
    parser.add_argument("--contrasts", required=True, help="contrasts.csv, one Contrast a row")
    parser.add_argument("--output", required=True, type=Path, help="folder for tables.*, timings.* and headline.md")
    parser.add_argument("--title", default="", help="what every caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        found = answer.answer(read_json(options.plan), read_records(options.contrasts, Contrast))
        write_tables(read_frame(options.summary, Cell), found, options.output, options.title)
