"""What MLflow is told of a run and of a cell: functions of their files."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo.analyse.records import LOGGED
from mcgrpo.files import RecordError, iter_json_lines
from mcgrpo.records import CELL, cell_name
from mcgrpo.study import methods
from mcgrpo.study.paths import METRICS, RECORD, ROLLOUTS
from mcgrpo.study.trained import read_record
from mcgrpo.study.variants import DEFAULT

Row = Mapping[str, Any]
"""A row of scores.jsonl, or of summary.csv beside its pairs (`mcgrpo.analyse.frames.read_cells`)."""
CURVES = (
    "reward", "loss", "grad_norm", "kl", "entropy", "completion_length", "clip_ratio", "advantage_abs_max",
    "frac_advantage_zero", "flips_mean_median",
)  # fmt: skip
"""The curves that are logged, by their names in curves.csv; a step's other metrics are in `metrics.jsonl`."""


@dataclass(frozen=True)
class Entry:
    """A run of MLflow, before it has an id.

    Args:
        kind: `run`, `cell` or `study`.
        key: what it is about; with `kind` its identity.
        started: in seconds since the epoch, as is `ended`.
        tags: which run or cell it is; logged as params too, since MLflow's plots offer only those.
        params: hyper-parameters.
        metrics: (name, value, time in seconds since the epoch, step).
        data: the training data as in run.json, with its `name`.
        rollouts: a file of rollouts that is shown as a table.
        folder: its files, and those in its `figures`, are artifacts.
    """

    kind: str
    key: str
    title: str
    started: float
    ended: float
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    metrics: list[tuple[str, float, float, int]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    rollouts: Path | None = None
    folder: Path | None = None

    @property
    def artifacts(self) -> list[Path]:
        """Of `folder`: other studies may have folders below it, and what is being written begins with a dot."""
        folders = [self.folder, self.folder / "figures"] if self.folder else []
        return sorted(path for folder in folders for path in folder.glob("[!.]*") if path.is_file())

    @property
    def digest(self) -> str:
        """A hash of all that is logged."""
        digest = hashlib.sha256(repr(vars(self)).encode())
        for path in self.artifacts:
            digest.update(str(path).encode() + path.read_bytes())
        return digest.hexdigest()[:16]


def title(row: Mapping[str, Any]) -> str:
    """What differs first, since MLflow cuts long names: `G2 MC-GRPO seed0 toy-qwen3`; without a seed that of a cell."""
    untrained = row["method"] == methods.UNTRAINED
    parts = ["" if untrained else f"G{row['num_generations']}", methods.label(row["method"])]
    parts += [f"seed{row['seed']}" if "seed" in row else "", row["setting"]]
    parts += ["" if row["variant"] == DEFAULT else row["variant"]]
    return " ".join(filter(None, parts))


def tags_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Which run or cell it is."""
    names = {name: "G" if name == "num_generations" else name for name in (*CELL, "seed")}
    return {short: str(row[name]) for name, short in names.items() if name in row}


def run_entry(folder: Path, scores: Iterable[Row]) -> Entry:
    """A finished training.

    Args:
        folder: the folder of its files.
        scores: its accuracies, rows of scores.jsonl.

    Raises:
        RecordError: for files that do not hold what they should.
    """
    run, outcome = read_record(folder / RECORD)
    if not (outcome and outcome.is_finished and outcome.data):
        raise RecordError(f"{folder / RECORD}: this is not the outcome of a finished training")
    started, ended = outcome.started, outcome.started + outcome.seconds
    params = {"model": run.model, "dataset": run.dataset, "loss_type": run.loss_type, "estimator": run.estimator}
    params |= {name: each if isinstance(each, str) else json.dumps(each) for name, each in run.training.items()}
    return Entry(
        kind="run",
        key=run.name,
        title=title(vars(run)),
        started=started,
        ended=ended,
        tags={**tags_of(vars(run)), "commit": str(outcome.commit), "device": outcome.device},
        params=params,
        metrics=[
            *curves(folder / METRICS),
            *((score_name(row), float(row["value"]), ended, outcome.steps) for row in scores),
        ],
        data={"name": run.dataset, **vars(outcome.data)},
        rollouts=folder / ROLLOUTS if (folder / ROLLOUTS).is_file() else None,
    )


def curves(path: Path) -> list[tuple[str, float, float, int]]:
    """The metrics of each step that are logged.

    Raises:
        RecordError: for a row without a step or a time.
    """
    points = []
    for where, row in iter_json_lines(path):
        if not {"step", "time"} <= row.keys():
            raise RecordError(f"{where}: a row needs step and time")
        values = {f"curve/{column}": row.get(LOGGED[column]) for column in CURVES}
        points += [(name, value, row["time"], row["step"]) for name, value in values.items() if value is not None]
    return points


def cell_entry(rows: list[Row], seeds: list[Entry], stamp: float) -> Entry:
    """A cell: the mean and the interval of each accuracy over its seeds, and the paired gain over its baseline.

    Args:
        rows: its accuracies, rows of summary.csv beside their pairs; none before there is one.
        seeds: its finished trainings, none for the untrained model.
        stamp: when the summary was written, in seconds since the epoch.
    """
    first = rows[0] if rows else {"num_generations": seeds[0].tags["G"], **seeds[0].tags}
    row = {key: each for key, each in first.items() if key != "seed"}
    metrics = {}
    for each in rows:
        accuracy, gain = score_name(each), score_name(each, "gain")
        columns = {accuracy: "mean", f"{accuracy}_low": "low", f"{accuracy}_high": "high"}
        columns |= {gain: "difference", f"{gain}_low": "difference_low", f"{gain}_high": "difference_high"}
        metrics |= {metric: float(each[column]) for metric, column in columns.items() if pd.notna(each[column])}
        metrics["seeds"] = max(metrics.get("seeds", 0.0), float(each["seeds"]))
    started = min((seed.started for seed in seeds), default=stamp)
    ended = max((seed.ended for seed in seeds), default=stamp)
    return Entry(
        kind="cell",
        key=cell_name(row),
        title=title(row),
        started=started,
        ended=ended,
        tags=tags_of(row),
        metrics=[(metric, value, ended, 0) for metric, value in metrics.items()],
        data=seeds[0].data if seeds else {},
    )


def is_accuracy(row: Row) -> bool:
    """Whether a row is of an accuracy of the final model under the paper's grading, and has a value."""
    return row["decoding"] is not None and pd.notna(row.get("value", row.get("mean")))


def score_name(row: Row, kind: str = "accuracy") -> str:
    """The name of an accuracy or a gain, such as `accuracy/gsm8k/greedy`; MLflow refuses the @ of `avg@4`."""
    return f"{kind}/{row['benchmark']}/{row['measure']}".replace("@", "_at_")
