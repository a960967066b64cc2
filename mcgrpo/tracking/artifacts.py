"""Files as artifacts: a run's record and grades, a study's tables and figures, and trained models."""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from mcgrpo.files import iter_json_lines, write_json
from mcgrpo.study.paths import GROUPS, METRICS, RECORD, ROLLOUTS, SYSTEM, ResultFiles
from mcgrpo.tracking import contents
from mcgrpo.tracking.store import Store

REPORT = "report"
RECORDS = (RECORD, METRICS, SYSTEM, GROUPS, ROLLOUTS)
TABLE = "rollouts.json"
SHOWN = ("*.md", "*.csv", "*.tex", "*.pdf", "*.html", "figures/*.png", "figures/*.pdf")


def log_files(store: Store, run: Any, files: list[tuple[Path, str]]) -> dict[str, str]:
    """Log files as artifacts of a run, each in a folder there, unless the run has exactly these.

    Returns:
        Tags to set once they are logged.
    """
    digest = hashlib.sha256()
    for path, _ in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    known = digest.hexdigest()[:16]
    if not files or run.data.tags.get(contents.DIGEST) == known:
        return {}
    return {**_log_together(store, run.info.run_id, files), contents.DIGEST: known}


def _log_together(store: Store, run_id: str, files: list[tuple[Path, str]]) -> dict[str, str]:
    """Log files in one call, as each asks the store for the run; rollouts as a table. Returns the tag that shows it."""
    from mlflow.utils.mlflow_tags import MLFLOW_LOGGED_ARTIFACTS

    tags = {}
    with tempfile.TemporaryDirectory() as together:
        for place, path in {Path(together, folder, path.name): path for path, folder in files}.items():
            place.parent.mkdir(exist_ok=True)
            if path.name == ROLLOUTS:
                write_json(place.with_name(TABLE), _as_table(path))
                tags[MLFLOW_LOGGED_ARTIFACTS] = json.dumps([{"path": TABLE, "type": "table"}])
            else:
                place.symlink_to(path.resolve())
        store.client.log_artifacts(run_id, together)
    return tags


def _as_table(path: Path) -> dict[str, Any]:
    """Completions with rewards and advantages as `log_table` writes them; it would append to those of before."""
    rows = [row for _, row in iter_json_lines(path)]
    columns = list(rows[0]) if rows else []
    return {"columns": columns, "data": [[row.get(each) for each in columns] for row in rows]}


def log_training(store: Store, run: Any, results: ResultFiles, name: str) -> dict[str, str]:
    """Log a training's record and rows, and the grades of its model; returns tags as `log_files` does."""
    records = [(path, "") for path in (results.run(name) / each for each in RECORDS) if path.is_file()]
    grades = [(path, "grades") for path in sorted(results.grades_of(name).glob("*.jsonl"))]
    return log_files(store, run, records + grades)


def log_report(store: Store, study: str, results: ResultFiles, reports: Path, note: str) -> None:
    """Log a study's tables and figures, in a run of their own."""
    runs = store.find(contents.KIND, REPORT)
    if not runs:
        stamp = contents.milliseconds(results.summary.stat().st_mtime)
        run_id = store.create(f"{study}: tables and figures", stamp, {contents.KIND: REPORT})
        store.client.set_terminated(run_id, "FINISHED", stamp)
        runs = [store.client.get_run(run_id)]
    shown = [path for pattern in SHOWN for path in sorted(reports.glob(pattern))]
    files = [(path, path.parent.name if path.parent != reports else "") for path in shown]
    tables = (results.summary, results.scores, results.curves)
    tags = log_files(store, runs[0], files + [(path, "") for path in tables if path.exists()])
    store.describe(runs[0].info.run_id, {}, {**tags, contents.NOTE: note})


def register(store: Store, study: str, run: Any, weights: Path) -> None:
    """Register the model that a run trained as a version of its cell's model, unless it is one already.

    Raises:
        FileNotFoundError: if the weights have been removed (the study does not keep them).
    """
    import mlflow.transformers

    if not weights.is_dir():
        raise FileNotFoundError(f"{weights}: no weights to register; keep_models keeps them")
    name = f"{study}.{run.data.tags[contents.CELL]}".replace("/", ".")
    client, query = store.client, f"name = '{name}'"
    if not client.search_registered_models(query):
        client.create_registered_model(name, {contents.KIND: "cell"}, f"Models of {name}, a version a seed.")
    if any(version.run_id == run.info.run_id for version in client.search_model_versions(query)):
        return
    with tempfile.TemporaryDirectory() as folder:
        requirements = ["transformers", "torch"]
        mlflow.transformers.save_model(
            str(weights), f"{folder}/model", task="text-generation", pip_requirements=requirements
        )
        client.log_artifacts(run.info.run_id, f"{folder}/model", "model")
    tags = {"seed": run.data.tags["seed"], contents.RUN: run.data.tags[contents.RUN]}
    client.create_model_version(name, f"{run.info.artifact_uri}/model", run.info.run_id, tags)
