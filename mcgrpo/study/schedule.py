"""When a training draws its rollouts: the arithmetic of TRL's sampler and of the transformers Trainer."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mcgrpo.files import RecordError
from mcgrpo.records import Run


@dataclass(frozen=True)
class Schedule:
    """The optimizer steps and generation batches of a training.

    Args:
        steps: optimizer steps.
        groups: of a generation batch.
        accumulation: micro-batches of an optimizer step.
        every: micro-batches from one generation to the next.
        epoch: micro-batches of an epoch.
    """

    steps: int
    groups: int
    accumulation: int
    every: int
    epoch: int

    def generations(self) -> Iterator[tuple[int, int]]:
        """(step, position) of each generation batch: the first optimizer step that uses it, from 1, and its position.

        The position is among the micro-batches of the step, as in `MCGRPOTrainer`.
        """
        updates = math.ceil(self.epoch / self.accumulation)
        batch = 0
        while True:
            epoch, micro = divmod(batch * self.every, self.epoch)
            step = epoch * updates + micro // self.accumulation
            if step >= self.steps:
                return
            left = self.epoch - micro // self.accumulation * self.accumulation
            yield step + 1, batch * self.every % min(self.accumulation, left)
            batch += 1


def schedule(run: Run, processes: int, rows: int) -> Schedule:
    """The schedule of a run on this number of processes, with this number of rows of training data.

    Raises:
        RecordError: for fewer rows than a generation batch takes: TRL leaves out what does not fill one, so that
            nothing would be left to train on.
    """
    training, size = run.training, run.training["per_device_train_batch_size"]
    accumulation = training.get("gradient_accumulation_steps", 1)
    per_generation = training.get("steps_per_generation", accumulation)
    every = per_generation * training.get("num_iterations", 1)
    groups = size * per_generation * processes // run.num_generations
    epoch = rows // max(groups, 1) * every
    if not groups or not epoch:
        raise RecordError(
            f"not one optimizer step would be taken: rollouts are generated for {groups} prompts at a time "
            f"(per_device_train_batch_size={size} x steps_per_generation={per_generation} x {processes} process(es) / "
            f"num_generations={run.num_generations}), and there are {rows} to train on"
        )
    updates = math.ceil(epoch / accumulation)
    steps = training.get("max_steps") or math.ceil(training.get("num_train_epochs", 3.0) * updates)
    return Schedule(steps, groups, accumulation, every, epoch)
