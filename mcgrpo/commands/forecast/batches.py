"""The batch arithmetic of a training, as in TRL."""

from typing import NamedTuple

from mcgrpo.files import RecordError
from mcgrpo.records import Run
from mcgrpo.study.schedule import schedule


class Batches(NamedTuple):
    """How a training goes through its prompts.

    Args:
        processes: number of processes.
        rows: rows of one process in one forward and backward pass (`per_device_train_batch_size`).
        accumulation: passes per optimizer step.
        num_generations: G, the rows of a prompt that reach the gradient.
        steps: optimizer steps; None if the size of the data set is unknown.
    """

    processes: int
    rows: int
    accumulation: int
    num_generations: int
    steps: int | None

    def __str__(self) -> str:
        prompts = self.processes * self.rows * self.accumulation / self.num_generations
        parts = f"{self.processes} process(es) x {self.rows} rows x {self.accumulation} accumulated"
        return f"{parts} = {prompts:g} prompts x G={self.num_generations} per step"


def batches(run: Run, gpus: int, examples: int | None) -> Batches:
    """The batch arithmetic of a training.

    Args:
        run: a run of the plan, whose `training` has a `per_device_train_batch_size`.
        gpus: GPUs of one training; with 0 it is one process.
        examples: size of the train split, if known.
    """
    rows, processes = run.training["per_device_train_batch_size"], max(gpus, 1)
    accumulation = run.training.get("gradient_accumulation_steps", 1)
    return Batches(processes, rows, accumulation, run.num_generations, _steps(run, processes, examples))


def _steps(run: Run, processes: int, examples: int | None) -> int | None:
    """With fewer prompts than one generation batch there are no steps, even with `max_steps`."""
    if examples is None:
        return run.training.get("max_steps")
    try:
        return schedule(run, processes, examples).steps
    except RecordError:
        return 0
