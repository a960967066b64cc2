"""One experiment, that of a study, in an MLflow tracking store."""

import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from mcgrpo.tracking import contents

BATCH = 1000  # metrics in one request: MLflow's own limit
SQLITE = "sqlite:///"
LOCAL_SERVER = "http://127.0.0.1:5000"
"""Of `mlflow ui`, for a store that is a file."""
MODEL_TRAINING = {"mlflow.experimentKind": "custom_model_development"}
"""Has MLflow list an experiment with those of model training."""

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # MLflow's 7 take minutes to say that a server is gone
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")


@cache
def metric_name(name: str) -> str:
    """The name as MLflow takes it: `avg@2` -> `avg_at_2`, any other sign that it refuses -> `_`."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_"))


class Store:
    """The experiment of a study; made, as a sqlite file is, if it is not there.

    Args:
        identity: which study of that name (see `mcgrpo.tracking.identity`): `find` finds what `create` made with the
            same one, and nothing else. Without one, for who only reads, every run.
    """

    def __init__(self, uri: str, study: str, identity: str = ""):
        self.uri = uri
        self.own = {contents.STUDY_ID: identity} if identity else {}
        self.client = _opened(uri)
        place = str(Path(uri.removeprefix(SQLITE)).resolve().parent / "mlruns" / study) if _is_file(uri) else None
        found = self.client.get_experiment_by_name(study)
        if found is None:
            try:
                self.experiment = self.client.create_experiment(study, place, MODEL_TRAINING)
            except Exception:  # another process was faster, unless there is none now either
                found = self.client.get_experiment_by_name(study)
                if found is None:
                    raise
        if found is not None:
            if found.lifecycle_stage == "deleted":
                self.client.restore_experiment(found.experiment_id)
            self.experiment = found.experiment_id

    @property
    def page(self) -> str:
        """Where MLflow shows the experiment's runs: without the query, a new browser is shown a page for chats."""
        server = self.uri.rstrip("/") if self.uri.startswith("http") else LOCAL_SERVER
        return f"{server}/#/experiments/{self.experiment}/runs?workflowType=machine_learning"

    def find(self, tag: str, value: str) -> list[Any]:
        """The study's MLflow runs with that tag."""
        wanted = {tag: value, **self.own}
        return list(self.search(" AND ".join(f"tags.`{key}` = '{text}'" for key, text in wanted.items())))

    def search(self, wanted: str = "") -> Iterator[Any]:
        """Every run of the experiment, or those wanted in MLflow's filter language."""
        token = None
        while True:
            page = self.client.search_runs([self.experiment], wanted, max_results=1000, page_token=token)
            yield from page
            if not (token := page.token):
                return

    def create(self, name: str, started: int, tags: Mapping[str, str]) -> Any:
        """A new run of the study; `started` in milliseconds since the epoch."""
        return self.client.create_run(self.experiment, started, {**tags, **self.own}, name)

    def begin(self, new: contents.Contents) -> str:
        """A new run, with all that is known at its start; returns its id."""
        run = self.create(new.name, new.started, new.tags)
        self.describe(run.info.run_id, new.params, {})
        if new.data:
            self.client.log_inputs(run.info.run_id, [_dataset(new)])
        return run.info.run_id

    def describe(self, run_id: str, params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Add params and tags."""
        from mlflow.entities import Param, RunTag

        listed = [Param(*item) for item in params.items()], [RunTag(*item) for item in tags.items()]
        if any(listed):
            self.client.log_batch(run_id, params=listed[0], tags=listed[1])

    def last_step(self, run_id: str, name: str) -> int:
        """Of a metric; -1 where it has none."""
        return max((metric.step for metric in self.client.get_metric_history(run_id, name)), default=-1)

    def log(self, run_id: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Metrics of steps, a step's in one request; rows hold `step` and `time` (seconds since the epoch)."""
        batch: list[Any] = []
        for row in rows:
            metrics = _metrics(row)
            if batch and len(batch) + len(metrics) > BATCH:
                self.client.log_batch(run_id, metrics=batch)
                batch = []
            batch += metrics
        if batch:
            self.client.log_batch(run_id, metrics=batch)


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

    columns = [{"type": "string", "name": name, "required": True} for name in contents.COLUMNS]
    dataset = Dataset(
        name=new.dataset,
        digest=new.data["sha256"][:16],
        source_type="local",
        source=json.dumps({"uri": new.data["path"]}),
        schema=json.dumps({"mlflow_colspec": columns}),
        profile=json.dumps({"num_rows": new.data["rows"]}),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "training")])


def _is_file(uri: str) -> bool:
    return uri.startswith(SQLITE) and len(uri) > len(SQLITE)


def _opened(uri: str) -> Any:
    """A client; of a sqlite store after its tables have been made or migrated, by one process of several."""
    from mlflow import MlflowClient

    with _alone(uri):
        if _is_file(uri) and _is_old(uri):
            _migrate(uri)
        return MlflowClient(uri)


def _is_old(uri: str) -> bool:
    """Whether another MLflow made the tables of a sqlite store; not where there are none."""
    import mlflow
    from alembic.script import ScriptDirectory

    with closing(sqlite3.connect(uri.removeprefix(SQLITE))) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
            return False
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    scripts = ScriptDirectory(str(Path(mlflow.__file__).parent / "store/db_migrations"))
    return found is not None and found[0] != scripts.get_current_head()


def _alone(uri: str) -> Any:
    """A lock beside a sqlite store, which is put into WAL mode: readers do not block the writer."""
    if not _is_file(uri):
        return nullcontext()
    from filelock import FileLock

    path = Path(uri.removeprefix(SQLITE))
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    with lock, closing(sqlite3.connect(path, timeout=60)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    return lock


def _migrate(uri: str) -> None:
    """Bring the tables that an earlier MLflow made up to this one's, with a copy of the store as it was beside it."""
    path = Path(uri.removeprefix(SQLITE))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(f"{path}.before-migration")) as copy:
        source.backup(copy)
    subprocess.run([sys.executable, "-m", "mlflow", "db", "upgrade", uri], check=True, capture_output=True)
