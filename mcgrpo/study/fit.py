"""The batch of a training, and checks that it fits GPUs, vLLM and data, before anything runs."""

from collections.abc import Mapping
from typing import Any


def with_batch(training: Mapping[str, Any], num_generations: int, gpus: int) -> dict[str, Any]:
    """Hyper-parameters with `prompts_per_step`, if it is given, as rows of a process (times steps of accumulation).

    `prompts_per_step` x G rows make one optimizer step over all processes, at every G; where
    `per_device_train_batch_size` is given too, it bounds the rows of a process, and gradients are accumulated.

    Args:
        gpus: that it trains on; without any, it is one process.

    Raises:
        ValueError: with the arithmetic.
    """
    training, bound, processes = {**training}, training.get("per_device_train_batch_size"), max(gpus, 1)
    if "prompts_per_step" in training:
        prompts = training.pop("prompts_per_step")
        rows, rest = divmod(prompts * num_generations, processes)
        training["per_device_train_batch_size"] = size = min(rows, bound or rows)
        if rest or rows % size:
            raise ValueError(
                f"prompts_per_step={prompts} x num_generations={num_generations} rows do not divide among {processes} "
                f"process(es) with batches of per_device_train_batch_size={size}"
            )
        training["gradient_accumulation_steps"] = rows // size
    elif bound is None:
        raise ValueError("training needs prompts_per_step or per_device_train_batch_size")
    return training


def check_fits(training: Mapping[str, Any], num_generations: int, gpus: int) -> None:
    """Refuse hyper-parameters (of `with_batch`) that do not fit G or the GPUs.

    Raises:
        ValueError: with the arithmetic.
    """
    processes, rows = max(gpus, 1), training["per_device_train_batch_size"]
    steps = training.get("steps_per_generation", training.get("gradient_accumulation_steps", 1))
    if rows * steps % num_generations:
        raise ValueError(
            f"num_generations={num_generations} does not divide the {rows * steps} rows that each of {processes} "
            f"process(es) generates at a time (per_device_train_batch_size={rows} x steps_per_generation={steps}): "
            "set `prompts_per_step`, or a number of rows that it divides"
        )
    check_sharding(training.get("sharding", "none"), gpus)
    check_stop(training)
    check_attention(training)
    if training.get("use_vllm"):
        check_vllm(training, processes)


def check_stop(training: Mapping[str, Any]) -> None:
    """Refuse stop strings without vLLM: TRL hands transformers no tokenizer, and trains on what follows the string.

    Raises:
        ValueError: naming the key.
    """
    if training.get("stop") and not training.get("use_vllm"):
        raise ValueError(
            "training.stop needs vLLM: set use_vllm: true and install vLLM, or leave `stop` to evaluation, where "
            "transformers has it too"
        )


def check_attention(training: Mapping[str, Any]) -> None:
    """Refuse flash-attention where it would be given fp32, which it does not compute in.

    Raises:
        ValueError: naming the keys.
    """
    if training.get("attn_implementation") != "flash_attention_2":
        return
    if not training.get("bf16"):
        raise ValueError("attn_implementation=flash_attention_2 computes in half precision: set bf16: true, or sdpa")
    if "lora" in training and not training.get("use_vllm"):
        raise ValueError(
            "attn_implementation=flash_attention_2 computes in half precision, and without vLLM a model with an "
            "adapter (lora) draws in fp32: set use_vllm: true and install vLLM, or sdpa"
        )


def check_vllm(training: Mapping[str, Any], processes: int) -> None:
    """Refuse settings of vLLM that do not fit the rest of the run.

    Raises:
        ValueError: naming them.
    """
    size, served = training.get("vllm_tensor_parallel_size", 1), training.get("vllm_mode") == "server"
    if served and not training.get("vllm_server_base_url"):
        raise ValueError("vllm_mode=server: start a vLLM server and name its address, vllm_server_base_url")
    if not served and processes % size:
        raise ValueError(
            f"vllm_tensor_parallel_size={size} does not divide the training's {processes} processes: each of vLLM's "
            "engines is shared by that many"
        )
    check_room(training, "max_completion_length")


def check_room(settings: Mapping[str, Any], completion: str) -> None:
    """Refuse a length of vLLM's sequences in which a `completion`, a key of the settings, leaves no room for a prompt.

    Raises:
        ValueError: with both.
    """
    room, longest = settings.get("vllm_max_model_length"), settings.get(completion, 0)
    if room is not None and room <= longest:
        raise ValueError(f"vllm_max_model_length={room} leaves no room for a prompt beside {completion}={longest}")


def check_sharding(sharding: str, gpus: int) -> None:
    """Refuse to shard what one process trains: accelerate would go on without a word, and without sharding.

    Raises:
        ValueError: with the number of GPUs.
    """
    if sharding != "none" and gpus < 2:
        raise ValueError(
            f"sharding={sharding} divides the weights among processes, one on each GPU, but gpus={gpus}: "
            "more `gpus`, or `sharding: none`"
        )
