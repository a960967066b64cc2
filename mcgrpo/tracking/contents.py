"""What MLflow is told of a training: a function of its record, the same whether it runs or was finished long ago."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcgrpo.records import Run
from mcgrpo.study.protocols import training_changes

KIND, RUN, CELL, DIGEST = "mcgrpo.kind", "mcgrpo.run", "mcgrpo.cell", "mcgrpo.digest"
STUDY_ID = "mcgrpo.study-id"
NOTE, PARENT = "mlflow.note.content", "mlflow.parentRunId"
INTERRUPTED = ("KeyboardInterrupt", "SystemExit")
COLUMNS = ("id", "split", "question", "answer", "solution")


@dataclass(frozen=True)
class Contents:
    """A run of MLflow, less its metrics and its end.

    `data` is what the training's record says of its data set: `path`, `sha256`, `rows`; empty in records without.
    """

    name: str
    started: int
    params: dict[str, str]
    tags: dict[str, str]
    dataset: str
    data: dict[str, Any]


def contents_of(run: Run, outcome: Mapping[str, Any]) -> Contents:
    """Of a training by its `run.json`."""
    values = {**vars(run), **run.training}
    params = {key: _text(value) for key, value in values.items() if key != "training"}
    tags = {
        KIND: "training",
        RUN: run.name,
        CELL: cell_name(vars(run)),
        "setting": run.setting,
        "method": run.method,
        "G": str(run.num_generations),
        "variant": run.variant,
        "estimator": run.estimator,
        "seed": str(run.seed),
        "protocol": protocol_of(run),
        "commit": str(outcome.get("commit")),
        "device": str(outcome.get("device")),
        "mlflow.source.name": "mcgrpo.train",
        "mlflow.source.type": "LOCAL",
    }
    if commit := outcome.get("commit"):
        tags["mlflow.source.git.commit"] = commit.removesuffix("-dirty")
    return Contents(run.name, milliseconds(outcome["started"]), params, tags, run.dataset, outcome.get("data") or {})


def ending(outcome: Mapping[str, Any]) -> dict[str, str]:
    """Tags that are known when a training has ended."""
    tags = {key: str(outcome[key]) for key in ("steps", "selected_step", "rollouts", "seconds") if key in outcome}
    return tags | ({NOTE: f"`{outcome['error']}`"} if "error" in outcome else {NOTE: ""})


def status_of(outcome: Mapping[str, Any], alive: bool) -> str:
    """RUNNING, FINISHED, FAILED or KILLED, in MLflow's sense.

    Args:
        outcome: of `run.json`: what the training last said of itself.
        alive: whether a process still works on it. One that was killed at once had no time to say so.
    """
    if outcome["status"] == "finished":
        return "FINISHED"
    if outcome["status"] == "running":
        return "RUNNING" if alive else "KILLED"
    return "KILLED" if outcome.get("error", "").startswith(INTERRUPTED) else "FAILED"


def protocol_of(run: Run) -> str:
    """`released` for a run that has all that the release does otherwise in its place, else `paper`."""
    try:
        released = training_changes("released", run.method, run.task)
    except ValueError:  # an estimator of the user's own, say
        return "paper"
    ours = {**run.training, "estimator": run.estimator}
    return "released" if released and all(ours.get(key) == value for key, value in released.items()) else "paper"


def cell_name(row: Mapping[str, Any]) -> str:
    """The cell of a run or of a row of `summary.csv`: a run's name less its seed."""
    return "{setting}/{method}/G{num_generations}/{variant}".format(**row)


def score_name(row: Mapping[str, Any]) -> str:
    """What a row of `scores.csv` or `summary.csv` is called: its measure on its benchmark, by what that one is."""
    kind = {"in": "accuracy", "out": "ood"}.get(row["role"], row["role"])
    return f"{kind}/{row['benchmark']}/{row['measure']}"


def milliseconds(seconds: float) -> int:
    """MLflow's time."""
    return int(seconds * 1000)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
