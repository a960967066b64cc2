"""Judge the paper's claims by its own numbers and by those of a study: claims.md, claims.tex and claims.csv.

python -m mcgrpo.report.claims --results results/mini --output reports/mini [--title "Mini study"]
"""

from pathlib import Path

from mcgrpo import command_line
from mcgrpo.report.claims.judge import rulings
from mcgrpo.report.claims.tables import write_rulings
from mcgrpo.study.paths import ResultFiles


def main(arguments: list[str] | None = None) -> None:
    """Judge the claims, write the files."""
    parser = command_line.parser("Judge the paper's claims.")
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY, with comparisons.csv")
    parser.add_argument("--output", required=True, type=Path, help="folder for claims.md, claims.tex and claims.csv")
    parser.add_argument("--title", default="", help="what the caption starts with, such as the study's name")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        write_rulings(rulings(ResultFiles(options.results).comparisons), options.output, options.title)


if __name__ == "__main__":
    main()
