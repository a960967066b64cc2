"""Sharding for models that exceed one GPU: PyTorch's FSDP2.

Every layout trains fp32 weights, whatever the dtype of computation. With `bf16`:

| sharding | weights in the optimizer | computation | gradient reduction | saved |
|---|---|---|---|---|
| `none` | fp32, full copy on every process | bf16 autocast | fp32 | fp32 |
| `fsdp` | fp32, sharded | bf16 copies, gathered layer by layer | fp32 | fp32 |

LoRA's adapters are treated like other weights. FSDP also shards the reference model. Gradients that accumulate are
summed over the processes and divided after each micro-batch: FSDP2 would else keep them whole until the last.
"""

from typing import Any


def fsdp_arguments(gradient_checkpointing: bool, use_cpu: bool = False) -> dict[str, Any]:
    """TRL's arguments for FSDP, whose own checkpointing gathers the weights of a layer once in the backward pass.

    Under FSDP TRL loads the reference model with `device_map="auto"`, which spreads it over all GPUs that a process
    sees. FSDP then moves its weights, but not its computation, and the first pass fails: it must start on the CPU.
    TRL warns that it ignores `model_init_kwargs`; that is true of the policy alone, which is loaded already.
    """
    config = {
        "version": 2,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "reshard_after_forward": True,
        "state_dict_type": "FULL_STATE_DICT",
        "activation_checkpointing": gradient_checkpointing,
    }
    return {
        "fsdp": True,
        "fsdp_config": config,
        "gradient_checkpointing": False,
        "model_init_kwargs": {"device_map": None},
        "accelerator_config": {
            "gradient_accumulation_kwargs": {"sync_each_batch": True},
            **(_shard_on_cpu() if use_cpu else {}),
        },
    }


def _shard_on_cpu() -> dict[str, Any]:
    """accelerate's settings for FSDP by processes on a CPU, with gloo; for pretended GPUs.

    accelerate takes the settings of FSDP for kinds of accelerators alone, and passes over them on a CPU without a word.
    It is told here that its processes are of such a kind; what is divided, gathered and computed is the real thing.
    """
    from accelerate import PartialState
    from accelerate.utils import DistributedType

    PartialState(cpu=True).distributed_type = DistributedType.MULTI_XPU
    return {"use_configured_state": True}


def check_sharded(trainer: Any) -> None:
    """Refuse a training whose weights accelerate does not divide, although its arguments say so.

    Raises:
        ValueError: with the device and the processes.
    """
    if trainer.args.fsdp and not trainer.is_fsdp_enabled:
        device, processes = trainer.accelerator.device, trainer.accelerator.num_processes
        raise ValueError(f"sharding=fsdp: accelerate does not divide the weights ({processes} process(es) on {device})")


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
    if not trainer.is_fsdp_enabled:
        return None
    state = trainer.accelerator.get_state_dict(trainer.model)
    tied = trainer.model.all_tied_weights_keys  # a tied output layer is gathered twice, saved once
    return {name: value for name, value in state.items() if name not in tied}
