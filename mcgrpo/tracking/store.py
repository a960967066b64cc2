"""The experiment of a study in an MLflow tracking store."""

import json
import math
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # MLflow's 7 take minutes to say that a server is gone
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

from mcgrpo.tracking.contents import Entry

BATCH = 1000
"""Metrics in one request; MLflow accepts no more."""
RUNS = 50_000
"""The most runs that MLflow returns at once, many times what a study has."""
KIND, KEY, DIGEST = "mcgrpo.kind", "mcgrpo.key", "mcgrpo.digest"
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"
MODEL_TRAINING = {"mlflow.experimentKind": "custom_model_development"}
"""Has MLflow list an experiment under model training."""
SQLITE = "sqlite:///"


class Store:
    """The experiment of a study, created if it does not exist; beside a SQLite file are the artifacts."""

    def __init__(self, uri: str, study: str):
        self.client = MlflowClient(uri)
        experiment = self.client.get_experiment_by_name(study)
        if experiment and experiment.lifecycle_stage == "deleted":  # in its user interface
            self.client.restore_experiment(experiment.experiment_id)
        beside = Path(uri.removeprefix(SQLITE)).resolve().parent if uri.startswith(SQLITE) else None
        artifacts = str(beside / "mlruns" / study) if beside else None
        self.experiment = (
            experiment.experiment_id if experiment else self.client.create_experiment(study, artifacts, MODEL_TRAINING)
        )
        self.written = 0
        self.known = defaultdict(list)  # the runs that an earlier call made, by kind and key
        for run in self.client.search_runs([self.experiment], f"tags.`{KIND}` != ''", max_results=RUNS):
            self.known[run.data.tags[KIND], run.data.tags[KEY]].append(run)

    def write(self, entry: Entry, parent: str = "") -> str:
        """Create a run unless it is there with the same content; one with another content is removed.

        Args:
            parent: id of the run that it is listed under.

        Returns:
            Its id.
        """
        tags = {KIND: entry.kind, KEY: entry.key, DIGEST: entry.digest}
        kept = None
        for run in self.known[entry.kind, entry.key]:
            whole = run.info.status == "FINISHED"  # set last: a pass that was interrupted writes the run anew
            if kept is None and whole and run.data.tags[DIGEST] == tags[DIGEST]:
                kept = run
            else:
                self.client.delete_run(run.info.run_id)
        if kept is None:
            return self._create(entry, tags | ({PARENT: parent} if parent else {}))
        if kept.data.tags.get(PARENT, "") != parent:
            self.client.set_tag(kept.info.run_id, PARENT, parent)
        return kept.info.run_id

    def _create(self, entry: Entry, tags: dict[str, str]) -> str:
        client = self.client
        run = client.create_run(self.experiment, milliseconds(entry.started), tags | entry.tags, entry.title)
        run_id = run.info.run_id
        metrics = [
            Metric(name, float(value), milliseconds(time), step)
            for name, value, time, step in entry.metrics
            if math.isfinite(value)
        ]
        params = [Param(*item) for item in {**entry.params, **entry.tags}.items()]
        client.log_batch(run_id, params=params)
        for start in range(0, len(metrics), BATCH):
            client.log_batch(run_id, metrics[start : start + BATCH])
        if entry.data:
            client.log_inputs(run_id, [dataset(entry.data)])
        if entry.rollouts:
            client.log_table(
                run_id, pd.read_json(entry.rollouts, lines=True, dtype=False).astype(object), "rollouts.json"
            )
        for path in entry.artifacts:
            client.log_artifact(run_id, str(path), "figures" if path.parent != entry.folder else None)
        client.set_terminated(run_id, "FINISHED", milliseconds(entry.ended))
        self.written += 1
        return run_id

    def describe(self, text: str) -> None:
        """Set the experiment's description, in Markdown."""
        self.client.set_experiment_tag(self.experiment, NOTE, text)


def dataset(data: dict[str, Any]) -> DatasetInput:
    """The data set of a training: `name`, `path`, `sha256` and `rows`."""
    source, profile = json.dumps({"uri": data["path"]}), json.dumps({"num_rows": data["rows"]})
    used = Dataset(data["name"], data["sha256"][:16], "local", source, profile=profile)
    return DatasetInput(used, [InputTag("mlflow.data.context", "training")])


def milliseconds(seconds: float) -> int:
    """A time as MLflow wants it."""
    return int(seconds * 1000)
