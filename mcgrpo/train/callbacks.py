"""Callbacks of the transformers Trainer: write metrics, stop at values that are not finite, manage checkpoints."""

import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from mcgrpo.train.attempts import Earlier, checkpoints, seal_checkpoint


class MetricsFile(TrainerCallback):
    """Write a JSON row per optimizer step: `step`, `time` (seconds since the epoch), and all metrics of the trainer."""

    def __init__(self, path: Path):
        self.path = path

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Append the row of a step, before its checkpoint is written.

        Raises:
            FloatingPointError: for a loss or gradient that is not finite: every later step would be lost.
        """
        if not logs or "loss" not in logs:  # the summary at the end
            return
        for name in ("loss", "grad_norm"):
            if not math.isfinite(value := logs.get(name, 0.0)):
                raise FloatingPointError(f"{name} is {value} at step {state.global_step}: the weights are lost")
        if state.is_world_process_zero:
            with self.path.open("a") as file:
                file.write(json.dumps({"step": state.global_step, "time": time.time(), **logs}) + "\n")


class Checkpoints(TrainerCallback):
    """Mark each complete checkpoint, and remove those that it replaces.

    None is written at the last step, whose weights are saved anyway, unless a checkpoint is to be selected.

    Args:
        earlier: the progress of earlier attempts.
    """

    def __init__(self, earlier: Earlier):
        self.earlier, self.begun = earlier, time.time()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Use the current `save_steps`: transformers would use that of the checkpoint."""
        state.save_steps = args.save_steps

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Keep transformers from saving at the last step."""
        if state.global_step >= state.max_steps and not args.load_best_model_at_end:
            control.should_save = False

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Seal the checkpoint: all processes have written their parts (see `ResumableTrainer`).

        That of the last step is not sealed: from there transformers would take one step more.
        """
        if args.save_only_model or not state.is_world_process_zero or state.global_step >= state.max_steps:
            return
        folder = Path(args.output_dir)
        seconds = self.earlier.seconds + time.time() - self.begun
        checkpoint = folder / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        seal_checkpoint(checkpoint, Earlier(self.earlier.started or self.begun, seconds))
        # Not earlier: until now the previous one was the last to resume from
        for other in {*checkpoints(folder)} - {checkpoint, Path(state.best_model_checkpoint or checkpoint)}:
            shutil.rmtree(other, ignore_errors=True)
