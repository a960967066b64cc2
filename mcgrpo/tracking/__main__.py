"""`mcgrpo track results/STUDY`: bring the MLflow store up to date with a study's files.

It logs every training that has left files (also one that runs), with its accuracies, grades and, where asked, its
model; a parent run for each cell; tables and figures. The store is MLFLOW_TRACKING_URI, else `sqlite:///mlflow.db`. Run
again, it adds what is new; with `--replay` it logs all of the study's runs from scratch.
"""

import argparse
import csv
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from filelock import Timeout

from mcgrpo import command_line
from mcgrpo.files import write_json
from mcgrpo.records import run_name
from mcgrpo.study.paths import ResultFiles
from mcgrpo.tracking import DEFAULT_STORE, URI, artifacts, cells, contents, warn
from mcgrpo.tracking.store import Store, identity_of, metric_name
from mcgrpo.tracking.sync import Skipped, Training, logging_lock, places

LOCK_SECONDS = 60


def accuracies(scores: Path) -> dict[str, dict[str, float]]:
    """The scores of each run, by run name, under the names of their metrics."""
    by_run: dict[str, dict[str, float]] = {}
    with scores.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["role"] != "train":
                run = by_run.setdefault(run_name(row), {})
                run[contents.score_name(row)] = float(row["value"])
    return by_run


class Tracked:
    """A study's files and its store.

    `ids` gets the MLflow run id of each run's name, `skipped` the names of runs whose files are wrong.
    """

    def __init__(self, uri: str, results: Path):
        self.results, self.files, self.study = results, ResultFiles(results), results.resolve().name
        self.store = Store(uri, self.study, identity_of(results))
        self.ids: dict[str, str] = {}
        self.skipped = Skipped()

    def track(self, options: argparse.Namespace) -> None:
        """Log all of the study."""
        if options.replay:
            self.forget()
        runs = self.trainings()
        self.evaluations(runs)
        if self.files.summary.is_file():
            self.summary(runs, options.reports)
        for run in runs if options.register_models else ():
            name = run.data.tags[contents.RUN]
            if run.info.status == "FINISHED":
                with self.skipped.on_error(name):
                    artifacts.register(self.store, self.study, run, self.files.model(name))

    def forget(self) -> None:
        """Remove every run that was made of this study (MLflow keeps what is removed until `mlflow gc`)."""
        for kind in ("training", "cell", artifacts.REPORT):
            for run in self.store.find(contents.KIND, kind):
                self.store.client.delete_run(run.info.run_id)

    def trainings(self) -> list[Any]:
        """Log every training; returns their MLflow runs."""
        runs = self.store.find(contents.KIND, "training")
        existing: dict[str, list[Any]] = {}
        for run in runs:
            existing.setdefault(run.data.tags[contents.RUN], []).append(run)
        for name, place in places(self.results).items():
            with self.skipped.on_error(name):
                training = Training(self.store, place, existing.get(name, []))
                if training.update():
                    self.ids[name] = training.run_id
        # Hundreds of runs take seconds to look up: not again if nothing was logged.
        complete = [run.info.run_id for run in runs if run.info.status == "FINISHED"]
        unchanged = len(complete) == len(runs) and {*complete} == {*self.ids.values()}
        return runs if unchanged else self.store.find(contents.KIND, "training")

    def evaluations(self, runs: list[Any]) -> None:
        """Log accuracies and files of every training."""
        scores = self.files.scores
        by_run = accuracies(scores) if scores.is_file() else {}
        for run in runs:
            name, old, tags = run.data.tags[contents.RUN], run.data.metrics, {}
            if run.info.status == "FINISHED":
                with self.skipped.on_error(name):
                    tags = artifacts.log_training(self.store, run, self.files, name)
            new = {key: value for key, value in by_run.get(name, {}).items() if old.get(metric_name(key)) != value}
            step = int(run.data.tags.get("steps", 0))
            rows = [{"step": step, "time": scores.stat().st_mtime, **new}] if new else []
            self.store.log(run.info.run_id, rows, tags)

    def summary(self, runs: list[Any], reports: Path) -> None:
        """Log the cells, the links that compare them, and the report."""
        summary, headline = self.files.summary, reports / "headline.md"
        ids = cells.write_cells(self.store, summary, runs)
        links = cells.comparisons(cells.read_cells(summary), ids, self.store.experiment)
        text = headline.read_text() if headline.is_file() else ""
        # MLflow shows the first line without a click
        self.store.client.set_experiment_tag(self.store.experiment, contents.NOTE, "\n\n".join([*links, text]))
        if reports.is_dir():
            artifacts.log_report(self.store, self.study, self.files, reports, text)


def main() -> None:
    """Bring the MLflow store up to date with the files of a study."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("results", type=Path, help="results/STUDY")
    parser.add_argument("--reports", type=Path, help="its tables and figures; default: reports/STUDY, if it exists")
    parser.add_argument("--replay", action="store_true", help="log every run of the study from scratch")
    parser.add_argument("--register-models", action="store_true", help="put trained models into MLflow's registry")
    parser.add_argument(
        "--output", type=Path, help="write each run's MLflow run id, as JSON; errors of the store are then ignored"
    )
    options = parser.parse_args()
    uri = os.environ.get(URI) or (None if options.output else DEFAULT_STORE)
    if not options.results.is_dir():
        raise SystemExit(f"error: {options.results}: no such folder")
    options.reports = options.reports or Path("reports") / options.results.resolve().name
    tracked = None
    try:
        with ExitStack() as stack:
            if uri:
                stack.enter_context(locked(options.results))
                tracked = Tracked(uri, options.results)
                tracked.track(options)
    except Exception as error:
        if not options.output:
            raise SystemExit(f"error: {uri}: {type(error).__name__}: {error}") from None
        warn("the study", error)
    ids, page, skipped = (tracked.ids, tracked.store.page, tracked.skipped) if tracked else ({}, "", ())
    if options.output:
        write_json(options.output, ids)
    print(f"{len(ids)} trainings in {uri or 'no store'}{f', see {page}' if page else ''}")
    if skipped and not options.output:
        raise SystemExit(f"error: incomplete: {', '.join(sorted(skipped))}")


def locked(results: Path) -> Any:
    """Acquire the study's lock, which its follower holds while it waits for a server.

    Raises:
        TimeoutError: if another process still holds it after a minute.
    """
    try:
        return logging_lock(results).acquire(timeout=LOCK_SECONDS)
    except Timeout as error:
        raise TimeoutError(f"another process has been logging {results} for {LOCK_SECONDS} s") from error


if __name__ == "__main__":
    main()
