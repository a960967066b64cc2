"""The batch arithmetic of a run, as TRL does it."""

import math
from dataclasses import dataclass

from mcgrpo.records import Run
from mcgrpo.study.estimators import extra_rollouts

TRL_EPOCHS = 3.0
"""The default of `num_train_epochs`."""


@dataclass(frozen=True)
class Batches:
    """How a training goes through its prompts.

    Args:
        processes: that train together.
        rows: of one process in one forward and backward pass.
        accumulation: passes that make one optimizer step.
        group_rows: rows that reach the gradient for each prompt: G.
        drawn: rollouts that are drawn for each prompt.
        prompts_at_once: prompts that all processes generate for at a time; fewer at an epoch's end are left out.
        steps: optimizer steps of the training; None where the size of the data set is not known.
    """

    processes: int
    rows: int
    accumulation: int
    group_rows: int
    drawn: int
    prompts_at_once: int
    steps: int | None

    @property
    def prompts(self) -> float:
        """Prompts of one optimizer step, over all processes."""
        return self.processes * self.rows * self.accumulation / self.group_rows

    @property
    def arithmetic(self) -> str:
        """In words."""
        parts = f"{self.processes} process(es) x {self.rows} rows x {self.accumulation} accumulated"
        return f"{parts} = {self.prompts:g} prompts x G={self.group_rows} a step"


def batches(run: Run, gpus: int, examples: int | None) -> Batches:
    """The arithmetic of a trained run.

    Args:
        run: as planned; its `training` has a `per_device_train_batch_size`.
        gpus: of one training; 0 trains in one process.
        examples: of the train split, if that is known.
    """
    training = run.training
    rows, processes = training["per_device_train_batch_size"], max(gpus, 1)
    accumulation = training.get("gradient_accumulation_steps", 1)
    generated = training.get("steps_per_generation", accumulation)
    at_once = rows * processes * generated // run.num_generations
    return Batches(
        processes=processes,
        rows=rows,
        accumulation=accumulation,
        group_rows=run.num_generations,
        drawn=drawn(run),
        prompts_at_once=at_once,
        steps=_steps(run, generated, accumulation, None if examples is None else examples // at_once),
    )


def drawn(run: Run) -> int:
    """Rollouts that a run draws for each prompt: G, and its `extra_rollouts` or those of its estimator."""
    extra = run.training.get("extra_rollouts")
    if extra is None:
        extra = extra_rollouts(run.estimator) if run.estimator else 0
    return run.num_generations + extra


def _steps(run: Run, generated: int, accumulation: int, whole: int | None) -> int | None:
    """Optimizer steps of `whole` batches of prompts, each generated for once and passed `num_iterations` times.

    As in TRL's RepeatSampler and transformers' `Trainer.set_initial_training_values`. Without one whole batch there is
    nothing to train on, whatever number of steps is asked for.
    """
    if whole == 0:
        return 0
    if "max_steps" in run.training:
        return run.training["max_steps"]
    if whole is None:
        return None
    passes = whole * run.training.get("num_iterations", 1) * generated
    return math.ceil(run.training.get("num_train_epochs", TRL_EPOCHS) * math.ceil(passes / accumulation))
