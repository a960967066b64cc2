"""A run's arguments for TRL: the hyper-parameters of its study, and what every run sets otherwise than TRL."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from mcgrpo.records import Run

TRL_CHANGES: dict[str, Any] = {
    "bf16": False,  # TRL: True where the device can; the study file says what is wanted
    "gradient_checkpointing": False,  # TRL: True
    "logging_steps": 1,  # TRL: 10; metrics.jsonl has a row per step
    "report_to": "none",  # tracking reads metrics.jsonl's rows, see mcgrpo.tracking
    "save_strategy": "no",
    "disable_tqdm": True,
    "shuffle_dataset": True,
}
"""What every run sets otherwise than TRL's defaults; a study's `training` goes on top."""


def arguments_of(run: Run, output: Path, gpus: int) -> Any:
    """The run's `MCGRPOConfig`; a `ReleasedConfig` where it has a fault of the release switched on."""
    from mcgrpo.released import ReleasedConfig
    from mcgrpo.trainer import MCGRPOConfig

    training = {key: value for key, value in run.training.items() if key not in ("select_checkpoint", "eval_steps")}
    faults = {field.name for field in fields(ReleasedConfig)} - {field.name for field in fields(MCGRPOConfig)}
    kind = ReleasedConfig if faults & training.keys() else MCGRPOConfig
    return kind(
        **{**TRL_CHANGES, **(selection(run) if selects(run) else {}), **training},
        output_dir=str(output),
        loss_type=run.loss_type,
        estimator=run.estimator,
        num_generations=run.num_generations,
        reward_weights=list(run.rewards.values()),
        seed=run.seed,
        use_cpu=gpus == 0,
    )


def selects(run: Run) -> bool:
    """Whether the checkpoint that does best on the test split is to be kept."""
    return run.training.get("select_checkpoint", "last") == "best-on-test"


def selection(run: Run) -> dict[str, Any]:
    """TRL's arguments for that: evaluations of the mean reward on the test split, one sample a question.

    They take place every `eval_steps`, and at the last step.
    """
    every = run.training.get("eval_steps", 100)
    return {
        "eval_strategy": "steps",
        "eval_steps": every,
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 1,
        "save_only_model": True,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_reward",
        "num_generations_eval": 1,
        "per_device_eval_batch_size": run.training["per_device_train_batch_size"],
    }
