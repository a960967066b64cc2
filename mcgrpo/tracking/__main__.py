"""`mcgrpo track results/STUDY`: bring the MLflow store up to date with a study's files.

Every training that has left files (one that runs, too), with its accuracies, grades and, where asked, its model; a
parent run for each cell; the tables and figures. The store is MLFLOW_TRACKING_URI, else `sqlite:///mlflow.db`. Called
again it adds what is new; with `--replay` it makes all of the study's runs anew.
"""

import argparse
import csv
import os
from pathlib import Path
from typing import Any

from mcgrpo.environment import DEFAULT_STORE
from mcgrpo.files import write_json
from mcgrpo.tracking import URI, artifacts, cells, contents, warn
from mcgrpo.tracking.store import Store, metric_name
from mcgrpo.tracking.sync import Training, places, telling


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
        self.results, self.study = results, results.resolve().name
        self.store = Store(uri, self.study)

    def forget(self) -> None:
        """Remove every run of the study (MLflow keeps what is removed until `mlflow gc`)."""
        for run in list(self.store.search()):
            self.store.client.delete_run(run.info.run_id)

    def trainings(self) -> dict[str, str]:
        """Every training; returns the MLflow run id of each run's name."""
        there: dict[str, list[Any]] = {}
        for run in self.store.find(contents.KIND, "training"):
            there.setdefault(run.data.tags[contents.RUN], []).append(run)
        ids = {}
        for name, place in places(self.results).items():
            training = Training(self.store, place, there.get(name, []))
            if training.update():
                ids[name] = training.run_id
        return ids

    def evaluations(self) -> None:
        """Accuracies and files of every training."""
        scores = self.results / "scores.csv"
        found = accuracies(scores) if scores.is_file() else {}
        for run in self.store.find(contents.KIND, "training"):
            name, have = run.data.tags[contents.RUN], run.data.metrics
            new = {key: value for key, value in found.get(name, {}).items() if have.get(metric_name(key)) != value}
            if new:
                step = int(run.data.tags.get("steps", 0))
                self.store.log(run.info.run_id, [{"step": step, "time": scores.stat().st_mtime, **new}])
            if run.info.status == "FINISHED":
                folder = self.results / "runs" / name
                artifacts.log_files(self.store, run, artifacts.files_of(self.results, name, folder))

    def summary(self, reports: Path) -> None:
        """Parents, and the report."""
        summary = self.results / "summary.csv"
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
            if run.info.status == "FINISHED":
                artifacts.register(self.store, self.study, run, self.results / "models" / run.data.tags[contents.RUN])


def track(uri: str, options: argparse.Namespace) -> dict[str, str]:
    """All of a study; returns the MLflow run id of each run's name."""
    with telling(options.results):
        tracked = Tracked(uri, options.results)
        if options.replay:
            tracked.forget()
        ids = tracked.trainings()
        tracked.evaluations()
        tracked.summary(options.reports)
        if options.register_models:
            tracked.models()
    return ids


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
    try:
        found = track(uri, options) if uri else {}
    except Exception as error:
        if not options.output:
            raise SystemExit(f"track: {uri}: {type(error).__name__}: {error}") from None
        warn("the study", error)
    if options.output:
        write_json(options.output, found)
    print(f"{len(found)} trainings in {uri or 'no store'}")


if __name__ == "__main__":
    main()
