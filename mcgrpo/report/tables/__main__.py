r"""Write the tables of a study, from the CSV files of the analysis: LaTeX, Markdown and one tidy CSV.

    python -m mcgrpo.report.tables --results results/mini --output reports/mini [--title "Mini study"]

writes tables.tex (to be \input; it names the packages that it needs), tables.md, tables.csv (the cells of every table
but the answer, as in the summary), headline.md (the answer as sentences), the training times, timings.{tex,md}, and the
computed signal, signal.{tex,md}.
"""

from pathlib import Path

from mcgrpo import command_line
from mcgrpo.analyse.frames import read_frame, read_records
from mcgrpo.analyse.records import Cell, CellSignal, Contrast
from mcgrpo.files import read_json
from mcgrpo.report import answer
from mcgrpo.report.tables import signal
from mcgrpo.report.tables.frame import write
from mcgrpo.report.tables.write import write_tables
from mcgrpo.study.paths import ResultFiles


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
        found = answer.answer(read_json(files.plan), read_records(files.contrasts, Contrast))
        signals = signal.table(read_frame(files.signals, CellSignal))
        write_tables(read_frame(files.summary, Cell), found, options.output, options.title)
        write(signals, options.output / "signal", signal.ABSENT, options.title)


if __name__ == "__main__":
    main()
