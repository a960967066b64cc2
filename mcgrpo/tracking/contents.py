"""What is logged of a training: a function of its record, the same whether it runs or finished long ago."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcgrpo.records import Run, cell_name
from mcgrpo.study.protocols import training_changes

KIND, RUN, CELL, DIGEST = "mcgrpo.kind", "mcgrpo.run", "mcgrpo.cell", "mcgrpo.digest"
STUDY_ID = "mcgrpo.study-id"
NOTE, PARENT = "mlflow.note.content", "mlflow.parentRunId"
INTERRUPTED = ("KeyboardInterrupt", "SystemExit")


@dataclass(frozen=True)
class Contents:
    """An MLflow run as it is known at its start; `started` in milliseconds since the epoch.

    `data` describes the data set, as in the record: `path`, `sha256`, `rows`; empty in records without.
    """

    name: str
    started: int
    params: dict[str, str]
    tags: dict[str, str]
    dataset: str
    data: dict[str, Any]


def contents_of(run: Run, outcome: Mapping[str, Any]) -> Contents:
    """The contents for a training's `run.json`: its run, and its `outcome`."""
    values = {name: value for name, value in {**vars(run), **run.training}.items() if name != "training"}
    params = {name: json.dumps(each) if isinstance(each, dict | list) else str(each) for name, each in values.items()}
    tags = {
        KIND: "training",
        RUN: run.name,
        CELL: cell_name(vars(run)),
        **{name: str(getattr(run, name)) for name in ("setting", "method", "variant", "estimator", "seed")},
        "G": str(run.num_generations),
        "protocol": protocol_of(run),
        **{name: str(outcome.get(name)) for name in ("commit", "device")},
        "mlflow.source.name": "mcgrpo.train",
        "mlflow.source.type": "LOCAL",
    }
    if commit := outcome.get("commit"):
        tags["mlflow.source.git.commit"] = commit.removesuffix("-dirty")
    return Contents(run.name, milliseconds(outcome["started"]), params, tags, run.dataset, outcome.get("data") or {})


def ending(outcome: Mapping[str, Any]) -> dict[str, str]:
    """Tags that are known when a training has ended."""
    tags = {name: str(outcome[name]) for name in ("steps", "selected_step", "rollouts", "seconds") if name in outcome}
    return tags | {NOTE: f"`{outcome['error']}`" if "error" in outcome else ""}


def status_of(outcome: Mapping[str, Any], alive: bool) -> str:
    """MLflow's status: RUNNING, FINISHED, FAILED or KILLED.

    Args:
        outcome: what the training last wrote of itself into `run.json`.
        alive: whether a process still works on it. One that was killed at once could not write its end.
    """
    if outcome["status"] == "finished":
        return "FINISHED"
    if outcome["status"] == "running":
        return "RUNNING" if alive else "KILLED"
    return "KILLED" if outcome.get("error", "").startswith(INTERRUPTED) else "FAILED"


def protocol_of(run: Run) -> str:
    """`released` for a run that makes every change of the release, else `paper`."""
    try:
        released = training_changes("released", run.method, run.task)
    except ValueError:  # an estimator of the user's own, say
        return "paper"
    ours = {**run.training, "estimator": run.estimator}
    return "released" if released and all(ours.get(name) == value for name, value in released.items()) else "paper"


def score_name(row: Mapping[str, Any]) -> str:
    """The name of a score in `scores.csv` or `summary.csv`, such as `accuracy/gsm8k/greedy`; `ood/...` out of
    distribution."""
    kind = {"in": "accuracy", "out": "ood"}.get(row["role"], row["role"])
    return f"{kind}/{row['benchmark']}/{row['measure']}"


def milliseconds(seconds: float) -> int:
    """A time as MLflow wants it."""
    return int(seconds * 1000)
