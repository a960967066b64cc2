"""Runs in MLflow: a view of the files, and the only module that imports mlflow.

The store is MLFLOW_TRACKING_URI (the workflow sets it to the study's `tracking_uri` unless it is set already); without
it nothing is tracked. Each training job is one MLflow run in the experiment of its study, found by the tag
`mcgrpo.run`. Nothing here may stop a training: whatever a store does, the cost is a warning, and
`python -m mcgrpo.tracking --plan plan.json --results results/STUDY --scores scores.csv --output FILE` mends it from
the files (and adds the accuracies, which are known only after grading).
"""

import argparse
import csv
import math
import os
import re
import sqlite3
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mcgrpo.files import as_record, iter_json_lines, read_json, write_json
from mcgrpo.records import Run

BATCH = 1000  # metrics in one request: MLflow's own limit
FLUSH_SECONDS = 5.0

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # MLflow's 7 keep a job waiting for minutes
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


def warn(doing: str, error: Exception) -> None:
    """One line on stderr: what was not tracked, and why."""
    reason = (str(error).splitlines() or [""])[0]
    print(f"warning: {doing} was not tracked in MLflow: {type(error).__name__}: {reason}", file=sys.stderr, flush=True)


def metric_name(name: str) -> str:
    """The name as MLflow takes it: `avg@2` -> `avg_at_2`, any other sign that it refuses -> `_`."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))


class Store:
    """One experiment (a study) of an MLflow tracking store."""

    def __init__(self, uri: str, study: str):
        from mlflow import MlflowClient

        with _created_once(uri):
            self.client = MlflowClient(uri)
            found = self.client.get_experiment_by_name(study)
            self.experiment = found.experiment_id if found else self.client.create_experiment(study)

    def find(self, run: Run) -> Any | None:
        """The MLflow run of a training job."""
        wanted = f"tags.`mcgrpo.run` = '{run.name}'"
        found = self.client.search_runs([self.experiment], wanted, max_results=1)
        return found[0] if found else None

    def start(self, run: Run, outcome: Mapping[str, Any]) -> str:
        """A new MLflow run for a training job, in place of that of an earlier attempt; returns its id."""
        from mlflow.entities import Param, RunTag

        while earlier := self.find(run):
            self.client.delete_run(earlier.info.run_id)
        run_id = self.client.create_run(self.experiment, _milliseconds(outcome), run_name=run.name).info.run_id
        values = {**vars(run), **run.training}
        params = [Param(key, str(value)) for key, value in values.items() if key not in ("training", "rewards")]
        names = ("setting", "method", "num_generations", "estimator", "variant", "seed")
        tags = {"mcgrpo.run": run.name, "commit": outcome.get("commit")} | {name: getattr(run, name) for name in names}
        self.client.log_batch(run_id, params=params, tags=[RunTag(key, str(value)) for key, value in tags.items()])
        return run_id

    def resume(self, run: Run, outcome: Mapping[str, Any]) -> tuple[str, int] | None:
        """Go on with the MLflow run of the same training (by its start): its id and the last step that it has."""
        found = self.find(run)
        if found is None or found.info.start_time != _milliseconds(outcome):
            return None
        self.client.update_run(found.info.run_id, status="RUNNING")
        logged = self.client.get_metric_history(found.info.run_id, "loss")
        return found.info.run_id, max((metric.step for metric in logged), default=0)

    def log(self, run_id: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Metrics of some steps; each row holds `step` and, optionally, `time` (seconds since the epoch)."""
        from mlflow.entities import Metric

        metrics = [
            Metric(metric_name(name), float(value), int(row.get("time", time.time()) * 1000), row["step"])
            for row in rows
            for name, value in row.items()
            if name not in ("step", "time") and isinstance(value, int | float) and math.isfinite(value)
        ]
        for start in range(0, len(metrics), BATCH):
            self.client.log_batch(run_id, metrics=metrics[start : start + BATCH])

    def finish(self, run_id: str, status: str) -> None:
        """End a run as FINISHED, FAILED or KILLED."""
        self.client.set_terminated(run_id, status)

    def replay(self, run: Run, folder: Path) -> str:
        """A run as its files tell it, whether it was tracked while it ran or not; returns its id."""
        outcome = read_json(folder / "run.json")["outcome"]
        rows = [row for _, row in iter_json_lines(folder / "metrics.jsonl")]
        found = self.find(run)
        if found and rows and _is_whole(found, outcome, rows[-1]["step"]):
            return found.info.run_id
        run_id = self.start(run, outcome)
        self.log(run_id, rows)
        self.log(run_id, [{"step": rows[-1]["step"], "last_step": rows[-1]["step"]}] if rows else [])
        self.finish(run_id, "FINISHED" if outcome["status"] == "finished" else "FAILED")
        return run_id


def _milliseconds(outcome: Mapping[str, Any]) -> int:
    return int(outcome["started"] * 1000)


def _is_whole(found: Any, outcome: Mapping[str, Any], last_step: int) -> bool:
    """Whether an MLflow run is of this very training, and was followed to its last step."""
    same = found.info.start_time == _milliseconds(outcome)
    return same and found.info.status == "FINISHED" and found.data.metrics.get("last_step") == last_step


def _created_once(uri: str) -> Any:
    """Jobs that start together must not each create the tables of a sqlite store; readers must not block writers."""
    if not uri.startswith("sqlite:///"):
        return nullcontext()
    from filelock import FileLock

    path = Path(uri.removeprefix("sqlite:///"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"), sqlite3.connect(path, timeout=60) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return FileLock(f"{path}.lock")


class Journal:
    """The live tracking of one training job: rows are sent every few seconds, and at the end.

    The first failure ends it with a warning; `replay` mends the store from the files.
    """

    def __init__(self, run: Run):
        self.run, self.store, self.run_id = run, None, ""
        self.logged = 0  # the last step that the store had when a training was resumed
        self.waiting: list[dict[str, Any]] = []
        self.last_step: int | None = None
        self.sent = 0.0

    def start(self, outcome: Mapping[str, Any]) -> None:
        """Open the store of MLFLOW_TRACKING_URI, if there is one, and begin the run, or go on with it."""
        if uri := os.environ.get("MLFLOW_TRACKING_URI"):
            try:
                self.store = Store(uri, self.run.study)
                found = self.store.resume(self.run, outcome)
                self.run_id, self.logged = found or (self.store.start(self.run, outcome), 0)
            except Exception as error:
                self._give_up(error)

    def add(self, row: Mapping[str, Any]) -> None:
        """One step's metrics."""
        if self.store is not None:
            self.last_step = row["step"]
            if row["step"] > self.logged:
                self.waiting.append({"time": time.time(), **row})
            if time.monotonic() - self.sent > FLUSH_SECONDS:
                self.flush()

    def flush(self) -> None:
        """Send what waits."""
        if self.store is not None and self.waiting:
            try:
                self.store.log(self.run_id, self.waiting)
                self.waiting, self.sent = [], time.monotonic()
            except Exception as error:
                self._give_up(error)

    def finish(self, status: str) -> None:
        """End the run; what was logged to the last step is marked as whole."""
        if self.last_step is not None and status == "FINISHED":
            self.waiting.append({"time": time.time(), "step": self.last_step, "last_step": self.last_step})
        self.flush()
        if self.store is not None:
            try:
                self.store.finish(self.run_id, status)
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        warn(f"run {self.run.name}", error)
        self.store = None


def replay(plan: Mapping[str, Any], results: Path, scores: Path) -> dict[str, str]:
    """Every run of a study into the store of MLFLOW_TRACKING_URI, with its accuracies; run name -> MLflow run id."""
    by_run: dict[str, dict[str, float]] = {}
    with scores.open(newline="") as file:
        for row in csv.DictReader(file):
            name = "{setting}/{method}/G{num_generations}/{variant}/seed{seed}".format(**row)
            if row["role"] != "train":
                by_run.setdefault(name, {})[f"accuracy/{row['benchmark']}/{row['measure']}"] = float(row["value"])
    store = Store(os.environ["MLFLOW_TRACKING_URI"], plan["study"])
    found = {}
    for row in plan["runs"]:
        run = as_record(Run, row, "plan")
        folder = results / "runs" / run.name
        if folder.is_dir():
            run_id = found[run.name] = store.replay(run, folder)
            store.log(run_id, [{"step": 0, **by_run.get(run.name, {})}])
    return found


def main() -> None:
    """Bring the MLflow store up to date with the files of a study."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="which MLflow run each run is")
    options = parser.parse_args()
    found: dict[str, str] = {}
    if os.environ.get("MLFLOW_TRACKING_URI"):
        try:
            found = replay(read_json(options.plan), options.results, options.scores)
        except Exception as error:
            warn("the study", error)
    write_json(options.output, found)
    print(f"{len(found)} runs in MLflow")


if __name__ == "__main__":
    main()
