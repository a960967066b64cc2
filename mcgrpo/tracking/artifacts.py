"""Files into MLflow: a run's grades and record, a study's tables and figures, and trained models as versions."""

import hashlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mcgrpo.files import iter_json_lines
from mcgrpo.study.paths import ResultFiles
from mcgrpo.tracking import contents
from mcgrpo.tracking.store import Store

REPORT = "report"
RECORDS = ("run.json", "metrics.jsonl", "system.jsonl", "groups.jsonl")
ROLLOUTS, TABLE = "rollouts.jsonl", "rollouts.json"
SHOWN = ("*.md", "*.csv", "*.tex", "*.pdf", "*.html", "figures/*.png", "figures/*.pdf")


def digest_of(files: Iterable[Path]) -> str:
    """Of names and contents."""
    found = hashlib.sha256()
    for path in files:
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def log_files(store: Store, run: Any, files: list[tuple[Path, str]]) -> None:
    """Log files as artifacts of a run, each to a folder there, unless the run has these very files."""
    digest = digest_of(path for path, _ in files)
    if files and run.data.tags.get(contents.DIGEST) != digest:
        for path, folder in files:
            if path.name == ROLLOUTS:
                log_rollouts(store, run, path)
            else:
                store.client.log_artifact(run.info.run_id, str(path), folder or None)
        store.client.set_tag(run.info.run_id, contents.DIGEST, digest)


def log_rollouts(store: Store, run: Any, path: Path) -> None:
    """Completions with their rewards and advantages as a table, which MLflow shows.

    As `MlflowClient.log_table` does, which would append to a table that is there already.
    """
    from mlflow.utils.mlflow_tags import MLFLOW_LOGGED_ARTIFACTS

    rows = [row for _, row in iter_json_lines(path)]
    columns = list(rows[0]) if rows else []
    table = {"columns": columns, "data": [[row.get(name) for name in columns] for row in rows]}
    store.client.log_dict(run.info.run_id, table, TABLE)
    logged = json.dumps([{"path": TABLE, "type": "table"}])
    store.client.set_tag(run.info.run_id, MLFLOW_LOGGED_ARTIFACTS, logged)


def files_of(results: Path, name: str, folder: Path) -> list[tuple[Path, str]]:
    """A training's record and rows, and the grades of its model."""
    records = [(folder / name, "") for name in (*RECORDS, ROLLOUTS) if (folder / name).is_file()]
    return records + [(path, "grades") for path in sorted(ResultFiles(results).grades_of(name).glob("*.jsonl"))]


def log_report(store: Store, study: str, results: Path, reports: Path, note: str) -> None:
    """A run with the study's tables and figures."""
    found, written = store.find(contents.KIND, REPORT), ResultFiles(results)
    if not found:
        stamp = contents.milliseconds(written.summary.stat().st_mtime)
        tags = {contents.KIND: REPORT}
        run_id = store.create(f"{study}: tables and figures", stamp, tags).info.run_id
        store.client.set_terminated(run_id, "FINISHED", stamp)
        found = [store.client.get_run(run_id)]
    shown = [path for pattern in SHOWN for path in sorted(reports.glob(pattern))]
    files = [(path, path.parent.name if path.parent != reports else "") for path in shown]
    tables = (written.summary, written.scores, written.curves)
    log_files(store, found[0], files + [(path, "") for path in tables if path.exists()])
    store.client.set_tag(found[0].info.run_id, contents.NOTE, note)


def register(store: Store, study: str, run: Any, weights: Path) -> None:
    """The model that a run trained, as a version of its cell's registered model; nothing if it is one already.

    Raises:
        FileNotFoundError: if the weights have been removed (the study does not keep them).
    """
    import mlflow.transformers

    if not weights.is_dir():
        raise FileNotFoundError(f"{weights}: no weights to register; keep_models keeps them")
    name = f"{study}.{run.data.tags[contents.CELL]}".replace("/", ".")
    client = store.client
    wanted = f"name = '{name}'"
    if not client.search_registered_models(wanted):
        client.create_registered_model(name, {contents.KIND: "cell"}, f"Models of {name}, a version a seed.")
    if any(version.run_id == run.info.run_id for version in client.search_model_versions(wanted)):
        return
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        mlflow.transformers.save_model(
            str(weights), str(model), task="text-generation", pip_requirements=["transformers", "torch"]
        )
        client.log_artifacts(run.info.run_id, str(model), "model")
    tags = {"seed": run.data.tags["seed"], contents.RUN: run.data.tags[contents.RUN]}
    client.create_model_version(name, f"{run.info.artifact_uri}/model", run.info.run_id, tags)
