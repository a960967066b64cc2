"""Models that one GPU does not hold: DeepSpeed's ZeRO stage 3 and PyTorch's FSDP2, as arguments of the trainer.

Every layout trains fp32 weights, whatever it computes in. With `bf16`:

| sharding | weights that the optimizer moves | computes in | sums gradients of processes in | saves |
|---|---|---|---|---|
| `none` | fp32, whole on every process | bf16 autocast | fp32 | fp32 |
| `fsdp` | fp32, a part on every process | bf16 copies, gathered layer by layer | fp32 | fp32 |
| `zero3` | fp32, a part on every process, beside a part in bf16 | that bf16, gathered layer by layer | fp32 | fp32 |

ZeRO loads the model in bf16, so that a checkpoint stored in fp32 is rounded once, at the start. LoRA's adapters are
weights like any other here. FSDP and ZeRO divide the reference model, too.
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
"""DeepSpeed's configuration; `auto` is filled in by transformers from the other arguments."""

FSDP: dict[str, Any] = {
    "version": 2,
    "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
    "reshard_after_forward": True,
    "state_dict_type": "FULL_STATE_DICT",
}
"""The `fsdp_config` of transformers."""


def sharding_arguments(sharding: Sharding, gradient_checkpointing: bool) -> dict[str, Any]:
    """What a sharding sets of TRL's arguments, gradient checkpointing included.

    Raises:
        ValueError: for a sharding that there is not.
    """
    if sharding == "fsdp":  # its own checkpointing gathers a layer's weights once in the backward pass, not twice
        config = {**FSDP, "activation_checkpointing": gradient_checkpointing}
        return {"fsdp": True, "fsdp_config": config, "gradient_checkpointing": False}
    if sharding not in ("none", "zero3"):
        raise ValueError(f"unknown sharding {sharding!r}; there are: none, zero3, fsdp")
    found: dict[str, Any] = {"gradient_checkpointing": gradient_checkpointing}
    return {**found, "deepspeed": deepcopy(ZERO3)} if sharding == "zero3" else found


def keep_log_probabilities(args: Any) -> None:
    """Of FSDP in bf16: let what a module returns, log-probabilities above all, stay as exact as it was computed.

    accelerate's own policy rounds the outputs of every module to bf16, log-probabilities to two or three digits, so
    that importance ratios are off by percents, and sums gradients in bf16.
    """
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy

    if args.fsdp and args.bf16:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        args.fsdp_plugin_args["mixed_precision_policy"] = policy


def whole_state(trainer: Any) -> dict[str, Any] | None:
    """The trained weights in fp32 on the CPU, by name, gathered from all processes; every process has to call it.

    Frozen weights are left out where there are any. Processes other than the first get an empty mapping; without
    sharding it is None, as every process has the whole model.
    """
    if trainer.is_fsdp_enabled:
        state = trainer.accelerator.get_state_dict(trainer.model)
        tied = trainer.model.all_tied_weights_keys  # an output layer that is the input's: gathered twice, saved once
        return {name: value for name, value in state.items() if name not in tied}
    if trainer.is_deepspeed_enabled:
        return _masters(trainer)
    return None


def _masters(trainer: Any) -> dict[str, Any]:
    """ZeRO's fp32 weights, one after the other; its own way of saving rounds them to bf16."""
    from deepspeed.utils import safe_get_full_fp32_param

    first, found = trainer.is_world_process_zero(), {}
    for name, parameter in trainer.accelerator.unwrap_model(trainer.model).named_parameters():
        if parameter.requires_grad:
            value = safe_get_full_fp32_param(parameter)
            if first:
                found[name] = value.cpu()
    return found
