"""Callbacks of the transformers Trainer: the metrics of a run into its file, and into MLflow while it trains."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from mcgrpo.records import Run
from mcgrpo.tracking import Journal


def is_step(logs: Mapping[str, Any] | None) -> bool:
    """Whether logs are those of an optimizer step (and not the summary at the end: `train_runtime` ...)."""
    return bool(logs) and "loss" in logs


class MetricsFile(TrainerCallback):
    """A JSON row per logged step, as it happens: `step`, `time` (seconds since the epoch), and all the trainer logs."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Append the row of a step."""
        if state.is_world_process_zero and is_step(logs):
            with self.path.open("a") as file:
                file.write(json.dumps({"step": state.global_step, "time": time.time(), **logs}) + "\n")


class TrackingCallback(TrainerCallback):
    """The same rows to MLflow. Its run is FINISHED when training ends; `failed` says otherwise."""

    def __init__(self, run: Run, outcome: Mapping[str, Any]):
        self.journal = Journal(run)
        self.outcome = outcome

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin the MLflow run."""
        if state.is_world_process_zero:
            self.journal.start(self.outcome)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Hand over the row of a step."""
        if is_step(logs):
            self.journal.add({"step": state.global_step, **logs})

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the MLflow run well."""
        self.journal.finish("FINISHED")

    def failed(self, error: BaseException) -> None:
        """End the MLflow run as what it was: KILLED on an interrupt, FAILED on any other error."""
        self.journal.finish("KILLED" if isinstance(error, KeyboardInterrupt | SystemExit) else "FAILED")
