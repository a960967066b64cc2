"""The seconds of each phase of an optimizer step."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import TrainerCallback

PHASES = ("generation", "rewards", "logprobs", "update")


class PhaseTimer(TrainerCallback):
    """Logs the seconds of each phase of an optimizer step under `seconds/*`.

    `update` is what is left of the step. A phase that is not in `PHASES` is subtracted, but not logged.

    Args:
        metrics: the trainer's `_metrics["train"]`.

    `seconds` are those of the current step so far.
    """

    def __init__(self, metrics: dict[str, list[float]]):
        self.metrics, self.start = metrics, 0.0
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds within it to a phase, without those of phases inside it."""
        start, inside = now(), sum(self.seconds.values())
        try:
            yield
        finally:
            self.seconds[name] += now() - start - (sum(self.seconds.values()) - inside)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the clock: TRL generates within the step."""
        self.seconds.clear()
        self.start = now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the step, including the optimizer's part."""
        self.seconds["update"] = now() - self.start - sum(self.seconds.values())
        for phase in PHASES:
            self.metrics[f"seconds/{phase}"].append(self.seconds[phase])


def now() -> float:
    """Seconds of a clock, once the GPU has finished its work."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
