r"""Write the tables of a study, from the CSV files of the analysis: LaTeX, Markdown and one tidy CSV.

    python -m mcgrpo.report.tables --results results/mini --output reports/mini [--title "Mini study"]

writes tables.tex (to be \input; it names the packages that it needs), tables.md, tables.csv (the cells of every table
but the answer and the questions, as in summary.csv, with their pairs as in comparisons.csv), headline.md (the answer as
sentences), the training times, timings.{tex,md}, and the computed signal, signal.{tex,md}.
"""

from collections.abc import Container
from dataclasses import fields
from pathlib import Path

import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse.frames import KINDS, PAIRED, read_cells, read_frame, read_records
from mcgrpo.analyse.records import Cell, CellSignal, Contrast
from mcgrpo.files import write_text
from mcgrpo.report import answer
from mcgrpo.report.tables import accuracy, flip_rates, grading, questions, sharpening, signal, trainings
from mcgrpo.report.tables.frame import PREAMBLE, Table, escape_latex, latex, markdown, write
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan

OTHERS = {
    "rivals": trainings.rivals,
    "stability": trainings.stability,
    "sharpening": sharpening.table,
    "grading": grading.table,
    "sign-flips": flip_rates.table,
}
"""The tables that are not lists of accuracies."""


def tables(summary: pd.DataFrame) -> list[Table]:
    """Every planned table, in the order of tables.md; without the answer and the training times."""
    found = [accuracy.table(plan, summary) for plan in accuracy.PLANS]
    return [each for each in (*found, *(make(summary) for make in OTHERS.values())) if each]


def write_tables(
    summary: pd.DataFrame, found: answer.Answer, output: Path, title: str = "", asked: Table | None = None,
    selections: Container[str] = (),
) -> None:  # fmt: skip
    """Write tables.{tex,md,csv}, headline.md and timings.{tex,md} into `output`.

    Training times are in separate files: they differ between repetitions of a study; all else is the same to the byte.

    Raises:
        ValueError: if the study plans none of the tables.
    """
    planned = tables(summary)
    if not planned:
        raise ValueError("the summary has neither an accuracy (greedy or avg@k) of a trained method nor sign flips")
    names = [*(plan.name for plan in accuracy.PLANS), *OTHERS]
    left = [name for name in names if name not in {table.name for table in planned}]
    absent = [f"Tables without a cell in this study: {', '.join(left)}."] if left else []
    shown = [each.titled(title) for each in (answer.answer_table(found), asked, *planned) if each]
    called = rf"\providecommand{{\StudyTitle}}{{{escape_latex(title)}}}"
    tex = ["\n".join([PREAMBLE, called, *(f"% {text}" for text in absent)]), *map(latex, shown)]
    tidy = pd.concat([table.cells.assign(table=table.name) for table in planned])
    write_text(output / "tables.tex", "\n\n".join(tex) + "\n")
    write_text(output / "tables.md", "\n\n".join([*map(markdown, shown), *absent]) + "\n")
    names = [field.name for field in fields(Cell)]
    pairs = [f"{kind}{ending}" for kind in KINDS for ending in PAIRED]
    columns = ["table", *names, *pairs]
    write_text(output / "tables.csv", tidy[columns].to_csv(index=False, lineterminator="\n"))
    write_text(output / "headline.md", answer.markdown(found, answer.lost(summary, selections)))
    write(trainings.timings(summary), output / "timings", "No training time is planned in this study.", title)


def main(arguments: list[str] | None = None) -> None:
    """Read the results, write the tables."""
    parser = command_line.parser("Write every table of the study.")
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY: plan.json, summary.csv, ...")
    parser.add_argument(
        "--output", required=True, type=Path, help="folder of tables.*, timings.*, signal.*, headline.md"
    )
    parser.add_argument("--title", default="", help="what every caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    files = ResultFiles(options.results)
    with command_line.errors(ValueError):
        plan, comparisons = read_plan(files.plan), read_records(files.comparisons, Contrast)
        found, asked = answer.answer(plan, comparisons), questions.table(plan, comparisons)
        signals = signal.table(read_frame(files.signals, CellSignal))
        write_tables(read_cells(files), found, options.output, options.title, asked, plan.selections)
        write(signals, options.output / "signal", signal.ABSENT, options.title)


if __name__ == "__main__":
    main()
