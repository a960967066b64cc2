"""Sharding for models that exceed one GPU: DeepSpeed's ZeRO stage 3 and PyTorch's FSDP2.

Every layout trains fp32 weights, whatever the dtype of computation. With `bf16`:

| sharding | weights in the optimizer | computation | gradient reduction | saved |
|---|---|---|---|---|
| `none` | fp32, full copy on every process | bf16 autocast | fp32 | fp32 |
| `fsdp` | fp32, sharded | bf16 copies, gathered layer by layer | fp32 | fp32 |
| `zero3` | fp32 and bf16, both sharded | the bf16 weights, gathered layer by layer | fp32 | fp32 |

ZeRO loads the model in bf16, so that a checkpoint stored in fp32 is rounded once, at the start. LoRA's adapters are
treated like other weights. FSDP and ZeRO also shard the reference model.
"""

from copy import deepcopy
from typing import Any, Literal

Sharding = Literal["none", "zero3", "fsdp"]

ZERO3: dict[str, Any] = {
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "contiguous_gradients": True,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
        "stage3_gather_16bit_weights_on_model_save": True,  # for checkpoints within a training
    },
    "bf16": {"enabled": "auto"},
    "communication_data_type": "fp32",
    "gradient_clipping": "auto",
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
}
"""DeepSpeed's configuration; transformers fills in `auto` from the other arguments."""

FSDP: dict[str, Any] = {
    "version": 2,
    "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "reshard_after_forward": True,
    "state_dict_type": "FULL_STATE_DICT",
}
"""The `fsdp_config` of transformers."""


def sharding_arguments(sharding: Sharding, gradient_checkpointing: bool) -> dict[str, Any]:
    """TRL's arguments for a sharding, including gradient checkpointing.

    Raises:
        ValueError: for an unknown sharding.
    """
    if sharding == "fsdp":  # FSDP's own checkpointing gathers a layer's weights once in the backward pass, not twice
        config = {**FSDP, "activation_checkpointing": gradient_checkpointing}
        return {"fsdp": True, "fsdp_config": config, "gradient_checkpointing": False}
    if sharding not in ("none", "zero3"):
        raise ValueError(f"unknown sharding {sharding!r}; there are: none, zero3, fsdp")
    arguments: dict[str, Any] = {"gradient_checkpointing": gradient_checkpointing}
    return {**arguments, "deepspeed": deepcopy(ZERO3)} if sharding == "zero3" else arguments


def keep_log_probabilities(args: Any) -> None:
    """For FSDP in bf16: keep the outputs of modules, above all log-probabilities, in the precision of computation.

    accelerate's default policy rounds the outputs of every module to bf16, log-probabilities to two or three digits, so
    that importance ratios are wrong by several percent; it also sums gradients in bf16.
    """
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy

    if args.fsdp and args.bf16:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        args.fsdp_plugin_args["mixed_precision_policy"] = policy


def whole_state(trainer: Any) -> dict[str, Any] | None:
    """The trained weights in fp32 on the CPU, by name, gathered from all processes; every process must call it.

    Frozen weights are left out. Processes other than the first get an empty mapping. Without sharding it is None, as
    every process has the whole model.
    """
    if trainer.is_fsdp_enabled:
        state = trainer.accelerator.get_state_dict(trainer.model)
        tied = trainer.model.all_tied_weights_keys  # a tied output layer is gathered twice, saved once
        return {name: value for name, value in state.items() if name not in tied}
    if trainer.is_deepspeed_enabled:
        return _masters(trainer)
    return None


def _masters(trainer: Any) -> dict[str, Any]:
    """ZeRO's fp32 weights, gathered one by one; its own save function rounds them to bf16."""
    from deepspeed.utils import safe_get_full_fp32_param

    first, weights = trainer.is_world_process_zero(), {}
    for name, parameter in trainer.accelerator.unwrap_model(trainer.model).named_parameters():
        if parameter.requires_grad:
            value = safe_get_full_fp32_param(parameter)
            if first:
                weights[name] = value.cpu()
    return weights
