"""What a study made, and where to look: `python -m mcgrpo.commands.made reports/mini`."""

import re
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.commands.evidence.contents import training_names
from mcgrpo.files import read_json
from mcgrpo.study.paths import ResultFiles, StudyFiles
from mcgrpo.tracking import store_of


def untracked(results: Path) -> tuple[int, int]:
    """Of how many trainings tracking.json names no MLflow run, and how many there are; (0, 0) without the file."""
    files = ResultFiles(results)
    if not files.tracking.is_file():
        return 0, 0
    trainings, tracked = training_names(read_json(files.plan)), read_json(files.tracking)
    return sum(not tracked.get(name) for name in trainings), len(trainings)


def main() -> None:
    """Print a study's headline and its files."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("reports", type=Path)
    reports = parser.parse_args().reports
    print((reports / "headline.md").read_text())
    figures = list((reports / "figures").glob("*.png"))
    print(f"Report    {reports}/report.html (open it in a browser)")
    print(f"Tables    {reports}/tables.md (also .tex, .csv)")
    print(f"Figures   {reports}/figures/ ({len(figures)}, as PDF and PNG)")
    print(f"Claims    {reports}/claims.md (also .tex, .csv)")
    document = reports / "reproduction.pdf"
    print(f"Document  {document if document.is_file() else 'none: latexmk is not installed'}")
    if store := store_of({}):
        print(f"Runs      mlflow ui --backend-store-uri {store}")
    files = StudyFiles(reports.name, root=reports.parent.parent)
    lacking, trainings = untracked(files.results.folder)
    log = files.log("track")
    for warning in re.findall(r"^warning: .+", log.read_text(errors="replace") if log.is_file() else "", re.MULTILINE):
        print(warning)
    if lacking:
        print(f"warning: MLflow lacks {lacking} of {trainings} trainings: `mcgrpo track {files.results.folder}`")


if __name__ == "__main__":
    main()
