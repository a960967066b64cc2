"""The experiment of a study in an MLflow tracking store."""

import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.tracking import contents

BATCH = 1000  # metrics in one request: MLflow's own limit
SQLITE = "sqlite:///"
LOCAL_SERVER = "http://127.0.0.1:5000"
"""Where `mlflow ui` serves a store that is a file."""
MODEL_TRAINING = {"mlflow.experimentKind": "custom_model_development"}
"""Has MLflow list an experiment under model training."""
IDENTITY = ".tracking-id"

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # MLflow's 7 take minutes to say that a server is gone
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")


def identity_of(results: Path) -> str:
    """The random id of a folder of results, made at the first call: studies of one name may share a server.

    Raises:
        OSError: if there is no id yet and the folder cannot be written.
    """
    path = results / IDENTITY
    if not path.is_file():
        new = results / f"{IDENTITY}.{uuid.uuid4().hex}"
        new.write_text(new.suffix[1:] + "\n")
        try:
            with suppress(FileExistsError):  # unlike a rename, a link fails where another process was faster
                os.link(new, path)
        except OSError:  # a file system without hard links
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    return path.read_text().strip()


@cache
def metric_name(name: str) -> str:
    """A name as MLflow accepts it: `avg@2` -> `avg_at_2`, any other character that it refuses -> `_`."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))


class Store:
    """The experiment of a study; created, as a SQLite file is, if it does not exist.

    Args:
        identity: see `identity_of`: `find` returns only runs that `create` made with the same one. Without, every run.
    """

    def __init__(self, uri: str, study: str, identity: str = ""):
        self.uri = uri
        self.own = {contents.STUDY_ID: identity} if identity else {}
        self.client = _client(uri)
        artifacts = str(_file(uri).resolve().parent / "mlruns" / study) if _file(uri) else None
        experiment = self.client.get_experiment_by_name(study)
        if experiment is None:
            try:
                self.experiment = self.client.create_experiment(study, artifacts, MODEL_TRAINING)
                return
            except Exception:
                if (experiment := self.client.get_experiment_by_name(study)) is None:  # else another process made it
                    raise
        if experiment.lifecycle_stage == "deleted":
            self.client.restore_experiment(experiment.experiment_id)
        self.experiment = experiment.experiment_id

    @property
    def page(self) -> str:
        """Where MLflow shows the runs. Without the query, a new browser is shown a page for chats."""
        server = self.uri.rstrip("/") if self.uri.startswith("http") else LOCAL_SERVER
        return f"{server}/#/experiments/{self.experiment}/runs?workflowType=machine_learning"

    def find(self, tag: str, value: str) -> list[Any]:
        """The study's MLflow runs with that tag."""
        tags = {tag: value, **self.own}
        return list(self.search(" AND ".join(f"tags.`{name}` = '{text}'" for name, text in tags.items())))

    def search(self, query: str = "") -> Iterator[Any]:
        """Every run of the experiment that matches a query in MLflow's filter language."""
        token = ""
        while token is not None:
            page = self.client.search_runs([self.experiment], query, max_results=1000, page_token=token or None)
            yield from page
            token = page.token or None

    def create(self, name: str, started: int, tags: Mapping[str, str]) -> str:
        """Create a run, and return its id; `started` in milliseconds since the epoch."""
        return self.client.create_run(self.experiment, started, {**tags, **self.own}, name).info.run_id

    def begin(self, new: contents.Contents) -> str:
        """Create a run with all that is known at its start, and return its id."""
        run_id = self.create(new.name, new.started, new.tags)
        self.describe(run_id, new.params, {})
        if new.data:
            self.client.log_inputs(run_id, [_dataset(new)])
        return run_id

    def describe(self, run_id: str, params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Log params and tags in one request."""
        from mlflow.entities import Param, RunTag

        params, tags = [Param(*item) for item in params.items()], [RunTag(*item) for item in tags.items()]
        self.client.log_batch(run_id, params=params, tags=tags)

    def last_step(self, run_id: str, name: str) -> int:
        """The last step of a metric; -1 where it has none."""
        return max((metric.step for metric in self.client.get_metric_history(run_id, name)), default=-1)

    def log(self, run_id: str, rows: Iterable[Mapping[str, Any]], tags: Mapping[str, str] | None = None) -> None:
        """Log metrics, all of a step in one request, and tags with the last of them.

        Args:
            rows: hold `step` and `time` (seconds since the epoch).
        """
        from mlflow.entities import RunTag

        batch: list[Any] = []
        for metrics in map(_metrics, rows):
            if batch and len(batch) + len(metrics) > BATCH:
                self.client.log_batch(run_id, metrics=batch)
                batch = []
            batch += metrics
        last = [RunTag(*item) for item in (tags or {}).items()]
        if batch or last:
            self.client.log_batch(run_id, metrics=batch, tags=last)


def _metrics(row: Mapping[str, Any]) -> list[Any]:
    from mlflow.entities import Metric

    stamp = contents.milliseconds(row.get("time", time.time()))
    return [
        Metric(metric_name(name), float(value), stamp, row["step"])
        for name, value in row.items()
        if name not in ("step", "time") and isinstance(value, int | float) and math.isfinite(value)
    ]


def _dataset(new: contents.Contents) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    names = ("id", "split", "question", "answer", "solution")
    columns = [{"type": "string", "name": name, "required": True} for name in names]
    dataset = Dataset(
        name=new.dataset,
        digest=new.data["sha256"][:16],
        source_type="local",
        source=json.dumps({"uri": new.data["path"]}),
        schema=json.dumps({"mlflow_colspec": columns}),
        profile=json.dumps({"num_rows": new.data["rows"]}),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])


def _file(uri: str) -> Path | None:
    """The file of a SQLite store."""
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) and len(uri) > len(SQLITE) else None


def _client(uri: str) -> Any:
    """A client; for a SQLite store, after one process of several has created or migrated its tables."""
    from mlflow import MlflowClient

    if (path := _file(uri)) is None:
        return MlflowClient(uri)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        with closing(sqlite3.connect(path, timeout=60)) as store:
            store.execute("PRAGMA journal_mode=WAL")  # readers do not block the writer
            _migrate(store, path)
        return MlflowClient(uri)


def _migrate(store: sqlite3.Connection, path: Path) -> None:
    """Migrate tables that another MLflow made, after a copy of the store to a file beside it."""
    import mlflow
    from alembic.script import ScriptDirectory

    try:
        version = store.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError:  # no tables yet
        return
    scripts = ScriptDirectory(str(Path(mlflow.__file__).parent / "store/db_migrations"))
    if version and version[0] != scripts.get_current_head():
        with closing(sqlite3.connect(f"{path}.before-migration")) as copy:
            store.backup(copy)
        command = [sys.executable, "-m", "mlflow", "db", "upgrade", f"{SQLITE}{path}"]
        subprocess.run(command, check=True, capture_output=True)
