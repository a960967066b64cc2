"""A run's arguments for TRL: the hyper-parameters of its study, and defaults that differ from TRL's."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from mcgrpo.launch.gpus import PRETENDED
from mcgrpo.records import Run
from mcgrpo.study.fit import check_attention, check_sharding, check_stop
from mcgrpo.study.settings import selects_checkpoint
from mcgrpo.train.rollout_engine import QUEUE_SECONDS, with_installed
from mcgrpo.train.sharding import fsdp_arguments, keep_log_probabilities

TRL_CHANGES: dict[str, Any] = {
    "bf16": False,  # TRL: True if the device supports it; set by the study file
    "gradient_checkpointing": False,  # TRL: True
    "gradient_checkpointing_kwargs": {"use_reentrant": False},  # TRL: torch's default
    "logging_steps": 1,  # TRL: 10; metrics.jsonl has one row per step
    "logging_nan_inf_filter": False,  # TRL: True, which hides losses that are not finite
    "save_strategy": "no",
    "disable_tqdm": True,
    "ddp_timeout": 7200,  # seconds, TRL: 1800; processes wait for the one that writes a checkpoint of 122 GB
    "use_bias_correction_kl": False,  # TRL: True, the KL term times the ratio; the paper's (P:260) is k3 alone
}
"""Defaults of every run that differ from TRL's; the `training` of a study overrides them."""

OURS = ("select_checkpoint", "eval_steps", "sharding", "attn_implementation", "lora", "max_prompt_length", "stop")
"""Keys of a study's `training` that are not arguments of TRL."""


def arguments_of(run: Run, output: Path, gpus: int, save_steps: int | None = None) -> Any:
    """The run's `MCGRPOConfig`, or a `ReleasedConfig` if the run has a fault of the release.

    With `save_steps` a checkpoint is written every `save_steps` optimizer steps.
    """
    import torch

    from mcgrpo.train.released import ReleasedConfig
    from mcgrpo.trainer.config import MCGRPOConfig

    training = with_installed({key: value for key, value in run.training.items() if key not in OURS})
    if stop := run.training.get("stop"):
        check_stop({**training, "stop": stop})
        training["generation_kwargs"] = {"stop": stop}
    check_attention({**run.training, "use_vllm": training.get("use_vllm")})
    if training.get("use_vllm") and training.get("vllm_mode") == "server":
        training["ddp_timeout"] = QUEUE_SECONDS
    sharding = run.training.get("sharding", "none")
    check_sharding(sharding, gpus)
    use_cpu = gpus == 0 or (PRETENDED in os.environ and not torch.cuda.is_available())
    if sharding == "fsdp":
        training |= fsdp_arguments(training.get("gradient_checkpointing", False), use_cpu)
    faults = {field.name for field in fields(ReleasedConfig)} - {field.name for field in fields(MCGRPOConfig)}
    kind = ReleasedConfig if faults & training.keys() else MCGRPOConfig
    args = kind(
        **{**TRL_CHANGES, **saving(run, save_steps), **training},
        output_dir=str(output),
        loss_type=run.loss_type,
        estimator=run.estimator,
        num_generations=run.num_generations,
        reward_weights=list(run.rewards.values()),
        seed=run.seed,
        use_cpu=use_cpu,
    )
    keep_log_probabilities(args)
    return args


def saving(run: Run, save_steps: int | None) -> dict[str, Any]:
    """TRL's arguments for checkpoints: to resume from, and to select from.

    A checkpoint is selected by the mean reward on the test split, with one sample per question, among those at every
    `eval_steps` and at the last step. With several processes some questions count twice: they fill up the last batch.
    """
    if not selects_checkpoint(run):
        return {"save_strategy": "steps", "save_steps": save_steps} if save_steps else {}
    every = run.training.get("eval_steps", 100)
    # Of a sharded training transformers loads no checkpoint that is of the model alone
    model_alone = save_steps is None and run.training.get("sharding", "none") == "none"
    return {
        "save_strategy": "steps",
        "save_steps": every,
        "save_only_model": model_alone,
        "save_total_limit": 1 if model_alone else None,  # else mcgrpo.train.callbacks.Checkpoints removes them
        "eval_strategy": "steps",
        "eval_steps": every,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_reward",
        "num_generations_eval": 1,
        "per_device_eval_batch_size": run.training["per_device_train_batch_size"],
    }
