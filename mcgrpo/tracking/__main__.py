"""`mcgrpo track results/STUDY`: bring the MLflow store up to date with a study's files.

Every training that has left files (one that runs, too), with its accuracies, grades and, where asked, its model; a
parent run for each cell; the tables and figures. The store is MLFLOW_TRACKING_URI, else `sqlite:///mlflow.db`. Called
again it adds what is new; with `--replay` it makes all of the study's runs anew.
"""

import argparse
import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import Timeout

from mcgrpo.files import write_json
from mcgrpo.study.paths import ResultFiles
from mcgrpo.tracking import DEFAULT_STORE, URI, artifacts, cells, contents, warn
from mcgrpo.tracking.identity import identity_of
from mcgrpo.tracking.store import Store, metric_name
from mcgrpo.tracking.sync import Training, of_one, places, telling

LOCK_SECONDS = 60


def accuracies(scores: Path) -> dict[str, dict[str, float]]:
    """What each run scored in evaluations, by run name, under the names that metrics have in MLflow."""
    found: dict[str, dict[str, float]] = {}
    with scores.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["role"] != "train":
                name = f"{contents.cell_name(row)}/seed{row['seed']}"
                found.setdefault(name, {})[contents.score_name(row)] = float(row["value"])
    return found


class Tracked:
    """A study's files and its store."""

    def __init__(self, uri: str, results: Path):
        self.results, self.files, self.study = results, ResultFiles(results), results.resolve().name
        self.store = Store(uri, self.study, identity_of(results))
        self.skipped: set[str] = set()

    def forget(self) -> None:
        """Remove every run that was made of this study (MLflow keeps what is removed until `mlflow gc`)."""
        for kind in ("training", "cell", artifacts.REPORT):
            for run in self.store.find(contents.KIND, kind):
                self.store.client.delete_run(run.info.run_id)

    @contextmanager
    def each(self, name: str) -> Iterator[None]:
        """Go on with the others after an error of one training, with a warning."""
        try:
            yield
        except Exception as error:
            if not of_one(error):
                raise
            if name not in self.skipped:
                warn(f"run {name}", error)
            self.skipped.add(name)

    def trainings(self, ids: dict[str, str]) -> None:
        """Every training; puts the MLflow run id of each run's name into `ids`."""
        there: dict[str, list[Any]] = {}
        for run in self.store.find(contents.KIND, "training"):
            there.setdefault(run.data.tags[contents.RUN], []).append(run)
        for name, place in places(self.results).items():
            with self.each(name):
                training = Training(self.store, place, there.get(name, []))
                if training.update():
                    ids[name] = training.run_id

    def evaluations(self) -> None:
        """Accuracies and files of every training."""
        scores = self.files.scores
        found = accuracies(scores) if scores.is_file() else {}
        for run in self.store.find(contents.KIND, "training"):
            name, have = run.data.tags[contents.RUN], run.data.metrics
            new = {key: value for key, value in found.get(name, {}).items() if have.get(metric_name(key)) != value}
            if new:
                step = int(run.data.tags.get("steps", 0))
                self.store.log(run.info.run_id, [{"step": step, "time": scores.stat().st_mtime, **new}])
            if run.info.status == "FINISHED":
                folder = self.files.run(name)
                with self.each(name):
                    artifacts.log_files(self.store, run, artifacts.files_of(self.results, name, folder))

    def summary(self, reports: Path) -> None:
        """Parents, and the report."""
        summary = self.files.summary
        if not summary.is_file():
            return
        trainings = {run.data.tags[contents.RUN]: run for run in self.store.find(contents.KIND, "training")}
        ids = cells.write_cells(self.store, summary, trainings)
        links = cells.comparisons(cells.read_cells(summary), ids, self.store.experiment)
        headline = reports / "headline.md"
        text = headline.read_text() if headline.is_file() else ""
        # Of its first line MLflow shows all without a click.
        self.store.client.set_experiment_tag(self.store.experiment, contents.NOTE, "\n\n".join([*links, text]))
        if reports.is_dir():
            artifacts.log_report(self.store, self.study, self.results, reports, text)

    def models(self) -> None:
        """Trained models into the registry."""
        for run in self.store.find(contents.KIND, "training"):
            name = run.data.tags[contents.RUN]
            if run.info.status == "FINISHED":
                with self.each(name):
                    artifacts.register(self.store, self.study, run, self.files.model(name))


def track(uri: str, options: argparse.Namespace, ids: dict[str, str], pages: list[str]) -> set[str]:
    """All of a study.

    Args:
        ids: gets the MLflow run id of each run's name, also if a later step fails.
        pages: gets where MLflow shows the study's runs.

    Returns:
        The names of the runs whose files were wrong, and not told whole.
    """
    with telling_alone(options.results):
        tracked = Tracked(uri, options.results)
        pages.append(tracked.store.page)
        if options.replay:
            tracked.forget()
        tracked.trainings(ids)
        tracked.evaluations()
        tracked.summary(options.reports)
        if options.register_models:
            tracked.models()
    return tracked.skipped


@contextmanager
def telling_alone(results: Path) -> Iterator[None]:
    """Hold the lock for telling of a study, which its follower has while it waits for a server.

    Raises:
        TimeoutError: if another process still has it after a minute.
    """
    try:
        lock = telling(results).acquire(timeout=LOCK_SECONDS)
    except Timeout as error:
        raise TimeoutError(f"another process has been telling of {results} for {LOCK_SECONDS} s") from error
    with lock:
        yield


def main() -> None:
    """Bring the MLflow store up to date with the files of a study."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("results", type=Path, help="results/STUDY")
    parser.add_argument("--reports", type=Path, help="its tables and figures; default: reports/STUDY if it is there")
    parser.add_argument("--replay", action="store_true", help="make every run of the study anew")
    parser.add_argument("--register-models", action="store_true", help="put trained models into MLflow's registry")
    parser.add_argument(
        "--output", type=Path, help="which MLflow run each run is, as JSON; then a store never fails it"
    )
    options = parser.parse_args()
    uri = os.environ.get(URI) or (None if options.output else DEFAULT_STORE)
    if not options.results.is_dir():
        raise SystemExit(f"track: {options.results}: no such folder")
    options.reports = options.reports or Path("reports") / options.results.resolve().name
    found: dict[str, str] = {}
    skipped: set[str] = set()
    pages: list[str] = []
    try:
        skipped = track(uri, options, found, pages) if uri else skipped
    except Exception as error:
        if not options.output:
            raise SystemExit(f"track: {uri}: {type(error).__name__}: {error}") from None
        warn("the study", error)
    if options.output:
        write_json(options.output, found)
    print(f"{len(found)} trainings in {uri or 'no store'}{f', to be seen at {pages[0]}' if pages else ''}")
    if skipped and not options.output:
        raise SystemExit(f"track: not told whole: {', '.join(sorted(skipped))}")


if __name__ == "__main__":
    main()
