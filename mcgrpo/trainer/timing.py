"""The seconds of each phase of an optimizer step."""

import time
from typing import Any

import torch
from transformers import TrainerCallback

PHASES = ("generation", "rewards", "logprobs", "update")


class PhaseTimer(TrainerCallback):
    """Logs the seconds of each phase of an optimizer step under `seconds/*`; `update` is whatever is no other phase.

    Args:
        seconds: phase -> seconds so far, emptied when a step begins (an evaluation may have added to it).
        metrics: the trainer's, to which a value is added at every step.
    """

    def __init__(self, seconds: dict[str, float], metrics: dict[str, list[float]]):
        self.seconds, self.metrics, self.start = seconds, metrics, 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock: TRL generates within the step."""
        self.seconds.clear()
        self.start = now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the step, its optimizer's part included."""
        self.seconds["update"] = now() - self.start - sum(self.seconds.values())
        for phase in PHASES:
            self.metrics[f"seconds/{phase}"].append(self.seconds[phase])


def now() -> float:
    """Seconds on a clock, once a GPU has done what it was given."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
