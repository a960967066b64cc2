"""`mcgrpo track [STUDY.yaml ...]`: bring the MLflow store up to date with the finished trainings of a study.

It logs each finished training with its accuracies, a parent run for each cell, and a run with the tables and figures.
The store is MLFLOW_TRACKING_URI, else the study's `tracking_uri`, else `sqlite:///mlflow.db`. Run again, it logs what
is new or has changed.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.analyse.frames import read_cells
from mcgrpo.analyse.scored import read_rows
from mcgrpo.files import RecordError
from mcgrpo.records import cell_name, run_name
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import METHODS, is_median, label
from mcgrpo.study.paths import RECORD, ResultFiles, StudyFiles
from mcgrpo.study.variants import DEFAULT
from mcgrpo.tracking import store_of
from mcgrpo.tracking.contents import Entry, Row, cell_entry, is_accuracy, run_entry

SERVER = "http://127.0.0.1:5000"
"""Where `mlflow ui` serves a store that is a file."""
PAGE = "#/experiments/{}/runs?workflowType=machine_learning"
"""The runs of an experiment; without the query, a new browser is shown a page for chats."""
NOTE_LIMIT = 19_000
"""Characters of a description; MLflow refuses more than 20,000."""


def accuracies_by(name: Callable[[Row], str], rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The accuracies that have a value, by the name of their run or cell."""
    found = defaultdict(list)
    for row in filter(is_accuracy, rows):
        found[name(row)].append(row)
    return found


def read_runs(results: ResultFiles) -> list[Entry]:
    """Every finished training; one whose files are wrong is left out, with a warning."""
    rows = map(vars, read_rows(results.scores)) if results.scores.is_file() else ()
    scores, runs = accuracies_by(run_name, rows), []
    for record in sorted(results.runs.glob(f"*/*/G*/*/seed*/{RECORD}")):
        try:
            runs.append(run_entry(record.parent, scores[str(record.parent.relative_to(results.runs))]))
        except RecordError as error:
            print(f"warning: not tracked: {error}", file=sys.stderr)
    return runs


def track(uri: str, study: str, results: ResultFiles, reports: Path) -> str:
    """Log all that is finished; returns what was done, in a sentence."""
    from mcgrpo.tracking.store import Store

    began, store = time.time(), Store(uri, study)
    summarised = results.summary.is_file()
    cells = read_cells(results).to_dict("records") if summarised else []
    runs, summary = read_runs(results), accuracies_by(cell_name, cells)
    stamp = results.summary.stat().st_mtime if summarised else began
    seeds: dict[str, list[Entry]] = {cell: [] for cell in summary}
    for run in runs:
        seeds.setdefault(run.key.rpartition("/")[0], []).append(run)
    ids: dict[str, list[str]] = {}
    for cell, entries in seeds.items():
        parent = store.write(cell_entry(summary.get(cell, []), entries, stamp))
        ids[cell] = [store.write(entry, parent) for entry in entries]
    if summarised and reports.is_dir():
        store.write(Entry("study", study, "tables and figures", stamp, stamp, folder=reports))
    store.describe(comparisons(ids, store.experiment))
    page = f"{uri.rstrip('/') if uri.startswith('http') else SERVER}/{PAGE.format(store.experiment)}"
    return f"{len(runs)} trainings in {uri}, {store.written} runs written in {time.time() - began:.0f} s: {page}"


def comparisons(ids: dict[str, list[str]], experiment: str) -> str:
    """Markdown: links to MLflow's comparison of the seeds of a median method with its baseline's, the smallest G first.

    Args:
        ids: cell -> ids of its seeds.
    """
    parts = {cell: cell.split("/") for cell in ids}
    text = "Seeds of the median beside those of the mean:"
    for cell in sorted(ids, key=lambda cell: (int(parts[cell][2][1:]), cell)):
        setting, method, size, variant = parts[cell]
        if not is_median(method) or variant != DEFAULT:
            continue
        baseline = METHODS[method].baseline
        runs = ids.get(f"{setting}/{baseline}/{size}/{variant}", []) + ids[cell]
        listed = ",".join(f"%22{run}%22" for run in runs)
        query = f"#/compare-runs?runs=[{listed}]&experiments=[%22{experiment}%22]"
        link = f"[{size} {label(method)} and {label(baseline)} {setting}]({query})"
        text += f"\n- {link}" if len(text) + len(link) < NOTE_LIMIT else ""
    return text


def main() -> None:
    """Bring the MLflow store up to date with the finished trainings of a study."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--results", type=Path, help="results/STUDY, instead of study files; with --reports")
    parser.add_argument("--reports", type=Path, help="its tables and figures")
    options = parser.parse_args()
    if options.results and not options.reports:
        parser.error("--results needs --reports")
    with command_line.errors(StudyError):
        config = {} if options.results else study_file.read(options.studies)
        results = ResultFiles(options.results) if options.results else StudyFiles(config["study"]).results
        study_file.existing({"study": results.folder.name}, results.runs)
    if not (uri := store_of(config)):
        raise SystemExit("error: no store: see tracking_uri in the study file, or MLFLOW_TRACKING_URI")
    try:
        print(track(uri, results.folder.name, results, options.reports or Path(config["reports"])))
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise SystemExit(f"error: not tracked in MLflow ({uri}): {type(error).__name__}: {reason}") from None


if __name__ == "__main__":
    main()
