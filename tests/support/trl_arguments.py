"""Every argument of TRL that can change sampling, loss or update: TRL's default, and the source of our value.

Values that differ are in `mcgrpo.train.arguments.TRL_CHANGES`. `python tests/support/trl_arguments.py` prints
the table in `config/README.md`. A test compares every default with TRL's and fails for arguments that are not listed.

In the sources, P:n is a line of the paper's LaTeX source, TRL is version 1.16, and R is the authors' release: its
recipes and, where they are silent, the defaults of its trl 0.26.1.
"""

from typing import Any

from mcgrpo.train.arguments import TRL_CHANGES

STUDY: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "per_device_eval_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": None,
    "num_iterations": 1,
    "max_steps": -1,
    "num_train_epochs": 3.0,
    "learning_rate": 1e-6,
    "lr_scheduler_type": "linear",
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "beta": 0.0,
    "use_bias_correction_kl": True,
    "epsilon": 0.2,
    "epsilon_high": None,
    "temperature": 1.0,
    "max_completion_length": 512,
    "chat_template_kwargs": None,
    "bf16": None,
    "gradient_checkpointing": True,
    "use_vllm": False,
    "vllm_mode": "colocate",
    "vllm_gpu_memory_utilization": 0.3,
    "vllm_enable_sleep_mode": False,
    "vllm_tensor_parallel_size": 1,
    "vllm_max_model_length": None,
    "vllm_server_base_url": None,
    "vllm_server_timeout": 240.0,
    "eval_steps": None,
}
"""Keys of a study's `training`, with TRL's defaults; `config/README.md` has their values and sources."""

RUN: dict[str, tuple[Any, str]] = {
    "loss_type": ("dapo", "the method's (`mcgrpo/study/methods.py`)"),
    "num_generations": (8, "the run's G"),
    "reward_weights": (None, "the study's `rewards`"),
    "seed": (42, "the run's (R: 42)"),
    "use_cpu": (False, "true without `gpus`"),
    "fsdp": (None, "`sharding: fsdp`"),
    "fsdp_config": (None, "`sharding: fsdp`"),
    "eval_strategy": ("no", "`steps` where a checkpoint is selected"),
    "load_best_model_at_end": (False, "true where a checkpoint is selected"),
    "metric_for_best_model": (None, "`eval_reward` where a checkpoint is selected"),
    "num_generations_eval": (None, "1 where a checkpoint is selected"),
}
"""Arguments that each run sets: TRL's default, and where the value comes from."""

_SAME = "R and TRL agree; P:556 follows TRL"
_WHOLE = "R and TRL agree; P:563 names the temperature alone: nothing is cut"

ARGUMENTS: dict[str, tuple[Any, str]] = {
    # sampling
    "top_p": (1.0, _WHOLE),
    "top_k": (0, "TRL: 0, and R: none, both cut nothing; P:563 names the temperature alone"),
    "min_p": (None, _WHOLE),
    "repetition_penalty": (1.0, _WHOLE),
    "generation_kwargs": (None, _WHOLE),
    "cache_implementation": (None, _SAME),
    "use_transformers_continuous_batching": (False, "TRL; R has none"),
    "use_transformers_paged": (False, "TRL's old name of `use_transformers_continuous_batching`"),
    "vllm_model_impl": ("vllm", "R and TRL agree"),
    "vllm_structured_outputs_regex": (None, "TRL; R the same, under an older name"),
    "generation_batch_size": (None, "TRL: follows from `steps_per_generation`"),
    "shuffle_dataset": (True, _SAME),
    "data_seed": (None, "TRL: that of `seed`"),
    "remove_unused_columns": (False, "R and TRL agree; rewards read the columns"),
    "dataloader_drop_last": (False, "R and TRL agree; batches of prompts are TRL's sampler's"),
    # the loss
    "importance_sampling_level": ("token", "P:239, a ratio for each token; R and TRL agree"),
    "delta": (None, "P:234, 240, no bound beside the clip; R and TRL agree"),
    "scale_rewards": ("group", "ours: not read, the estimator scales"),
    "multi_objective_aggregation": ("sum_then_normalize", "P:611, rewards are added up; TRL, and R has no other"),
    "mask_truncated_completions": (False, "R and TRL agree; P:556 leaves DAPO's treatment of truncation out"),
    "top_entropy_quantile": (1.0, _SAME),
    "entropy_coef": (0.0, "TRL; neither P nor R has such a term"),
    "use_adaptive_entropy": (False, "TRL; neither P nor R has such a term"),
    "off_policy_mask_threshold": (None, "TRL; neither P nor R has such a mask"),
    "vllm_importance_sampling_correction": (
        True,
        "R and TRL agree; P is silent. With vLLM a row's loss is times the probability of its tokens under the model "
        "as trained over that under vLLM; the KL term is not",
    ),
    "vllm_importance_sampling_mode": ("sequence_mask", "R and TRL agree: one ratio a row, and 0 above the bound"),
    "vllm_importance_sampling_clip_max": (3.0, "R and TRL agree (R: as `vllm_importance_sampling_cap`)"),
    "vllm_importance_sampling_clip_min": (None, "TRL; R has none"),
    "vllm_importance_sampling_cap": (None, "TRL's old name of `vllm_importance_sampling_clip_max`"),
    "sync_ref_model": (False, "R and TRL agree: the reference stays the untrained model"),
    "model_init_kwargs": (None, "TRL loads the reference as the policy: fp32 weights, the same attention"),
    "cast_lm_head_to_fp32": (False, _SAME),
    "disable_dropout": (False, "R and TRL agree; the models of the studies have none"),
    "router_aux_loss_coef": (None, "TRL: the model's own; no model of the studies has a router"),
    # the update
    "optim": ("adamw_torch_fused", "P:559, AdamW; TRL's implementation"),
    "optim_args": (None, "TRL"),
    "optim_target_modules": (None, "TRL"),
    "adam_beta1": (0.9, "R and TRL agree; P is silent"),
    "adam_beta2": (0.999, "R and TRL agree; P is silent"),
    "adam_epsilon": (1e-8, "R and TRL agree; P is silent"),
    "lr_scheduler_kwargs": (None, "R and TRL agree: a cosine to 0"),
    "average_tokens_across_devices": (True, "TRL; not read, GRPO's losses count tokens themselves"),
    "neftune_noise_alpha": (None, "R and TRL agree: no noise"),
    "ignore_data_skip": (False, "TRL: a resumed training continues where it was"),
    "auto_find_batch_size": (False, "TRL refuses it"),
    "eval_on_start": (False, "TRL: no rollouts of an evaluation before the first step"),
    "eval_delay": (0, "TRL: evaluations from the first `eval_steps` on"),
    "greater_is_better": (None, "TRL: true of a reward"),
    # precision and computation
    "fp16": (False, "R and TRL agree"),
    "bf16_full_eval": (False, "TRL"),
    "fp16_full_eval": (False, "TRL"),
    "tf32": (None, "TRL: torch's own choice, full precision in matrix products"),
    "torch_compile": (False, "TRL"),
    "use_liger_kernel": (False, "R and TRL agree"),
    "gradient_checkpointing_kwargs": (None, "R; the results are those of torch's other way"),
    "use_cache": (False, "TRL, in the forward pass of training"),
    "pad_to_multiple_of": ("auto", "TRL: none on CPUs and NVIDIA GPUs; R has none"),
    "full_determinism": (False, "TRL; on a CPU a run gives the same bits anyway"),
    "accelerator_config": (None, "TRL"),
    "deepspeed": (None, "TRL; our runs have `sharding: fsdp`"),
    "parallelism_config": (None, "TRL"),
}
"""All others that can change sampling, loss or update: TRL's default, and the source of our value."""

IRRELEVANT: dict[str, str] = {
    "read only where an argument above is on that is off here": "liger_kernel_config ref_model_mixup_alpha "
    "ref_model_sync_steps entropy_coef_min entropy_coef_max entropy_coef_delta entropy_target torch_compile_backend "
    "torch_compile_mode transformers_continuous_batching_config",
    "of losses that no method has": "sapo_temperature_neg sapo_temperature_pos vespo_k_pos vespo_lambda_pos "
    "vespo_k_neg vespo_lambda_neg",
    "of tools and of code from the hub, which runs do not use": "max_tool_calling_iterations trust_remote_code",
    "not read by GRPOTrainer in training": "label_smoothing_factor label_names train_sampling_strategy "
    "length_column_name prediction_loss_only eval_do_concat_batches eval_use_gather_object eval_accumulation_steps "
    "include_for_metrics batch_eval_metrics do_train do_eval do_predict resume_from_checkpoint local_rank",
    "how logs are written": "logging_strategy logging_steps logging_first_step log_on_each_node "
    "logging_nan_inf_filter include_num_input_tokens_seen log_level log_level_replica disable_tqdm report_to run_name "
    "project trackio_space_id trackio_bucket_id trackio_static_space_id log_completions log_multimodal "
    "num_completions_to_print log_unique_prompts log_completions_hub_repo debug skip_memory_metrics",
    "where checkpoints go and what is in them": "output_dir save_only_model save_strategy save_steps "
    "save_on_each_node save_total_limit enable_jit_checkpoint restore_callback_states_from_checkpoint push_to_hub "
    "hub_token hub_private_repo hub_model_id hub_strategy hub_always_push hub_revision",
    "how rows, weights and gradients travel, and the memory for it": "dataloader_num_workers dataloader_pin_memory "
    "dataloader_persistent_workers dataloader_prefetch_factor dataloader_multiprocessing_context dataloader_in_order "
    "ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph ddp_backend ddp_timeout "
    "ds3_gather_for_generation torch_empty_cache_steps vllm_server_host vllm_server_port vllm_group_port",
}
"""Reason why arguments are not listed above -> their names, separated by spaces."""


def table() -> str:
    """`ARGUMENTS` and `RUN` as a Markdown table for `config/README.md`, followed by the names in `IRRELEVANT`."""
    rows = [
        f"| `{name}` | {_shown(TRL_CHANGES.get(name, default))} | {_shown(default)} | {source} |"
        for name, (default, source) in ARGUMENTS.items()
    ]
    rows += [f"| `{name}` | {source} | {_shown(default)} | ours |" for name, (default, source) in RUN.items()]
    head = ["| argument | our runs | TRL's default | source |", "|---|---|---|---|"]
    others = [f"- {reason}: {', '.join(f'`{name}`' for name in names.split())}" for reason, names in IRRELEVANT.items()]
    return "\n".join([*head, *rows, "", "Not listed, as results do not depend on them:", "", *others])


def _shown(value: Any) -> str:
    return "none" if value is None else f"`{value}`"


if __name__ == "__main__":
    print(table())
