"""Callbacks of the transformers Trainer: a run's metrics into their file, its checkpoints, its health."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, rotate_checkpoints

from mcgrpo.train.attempts import Earlier, seal_checkpoint


def is_step(logs: Mapping[str, Any] | None) -> bool:
    """Whether logs are those of an optimizer step (and not the summary at the end: `train_runtime` ...)."""
    return bool(logs) and "loss" in logs


class MetricsFile(TrainerCallback):
    """A JSON row per logged step, as it happens: `step`, `time` (seconds since the epoch), and all the trainer logs."""

    def __init__(self, path: Path):
        self.path = path

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Append the row of a step."""
        if state.is_world_process_zero and is_step(logs):
            with self.path.open("a") as file:
                file.write(json.dumps({"step": state.global_step, "time": time.time(), **logs}) + "\n")


class StopAtNonFinite(TrainerCallback):
    """Ends a training whose loss or gradient is no longer a number: every later step would be lost."""

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Look at a step, before a checkpoint of it is written.

        Raises:
            FloatingPointError: naming the step and the value.
        """
        for name in ("loss", "grad_norm"):
            if is_step(logs) and not math.isfinite(value := logs.get(name, 0.0)):
                raise FloatingPointError(f"{name} is {value} at step {state.global_step}: the weights are lost")


class Checkpoints(TrainerCallback):
    """Marks each checkpoint that is complete, and removes those that it replaces.

    None is written at the last step, whose weights are saved anyway, unless one is to be chosen among checkpoints.

    Args:
        earlier: what the attempts before this one have come to.
    """

    def __init__(self, earlier: Earlier):
        self.earlier, self.begun = earlier, time.time()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Save as often as is asked for now: transformers would go on as the checkpoint did."""
        state.save_steps = args.save_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep transformers from saving at the end."""
        if state.global_step >= state.max_steps and not args.load_best_model_at_end:
            control.should_save = False

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """All processes have written their parts by now: see `ResumableTrainer`."""
        if args.save_only_model or not state.is_world_process_zero:
            return
        folder = Path(args.output_dir)
        so_far = Earlier(self.earlier.started or self.begun, self.earlier.seconds + time.time() - self.begun)
        checkpoint = folder / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        seal_checkpoint(checkpoint, state.global_step, state.max_steps, so_far)
        # Not before: until now the one before was the last to go on from, as it is while the training's end is saved
        if state.global_step < state.max_steps:
            rotate_checkpoints(str(folder), 1, state.best_model_checkpoint)
