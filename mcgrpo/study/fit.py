"""Checks that a training fits its batch, GPUs, vLLM and data, before anything runs."""

from collections.abc import Iterable, Mapping
from typing import Any

from mcgrpo.records import Run


def fit(training: dict[str, Any], num_generations: int, gpus: int, nodes: int = 1) -> None:
    """Set the batch, and refuse what does not fit the GPUs of a training; without any, it is one process.

    Args:
        gpus: that it trains on, over all `nodes` machines.

    Raises:
        ValueError: with the arithmetic.
    """
    check_machines(gpus, nodes, server_gpus(training))
    _set_batch(training, num_generations, max(gpus, 1))
    check_sharding(training.get("sharding", "none"), gpus)
    if training.get("use_vllm"):
        check_vllm(training, max(gpus, 1))


def _set_batch(training: dict[str, Any], num_generations: int, processes: int) -> None:
    """Prompts of a step, if they are given, as rows of a process (times steps of accumulation); and G must fit.

    `prompts_per_step` x G rows make one optimizer step over all processes, at every G; where
    `per_device_train_batch_size` is given too, it bounds the rows of a process, and gradients are accumulated.

    Raises:
        ValueError: with the arithmetic.
    """
    bound = training.get("per_device_train_batch_size")
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
    rows = training["per_device_train_batch_size"]
    steps = training.get("steps_per_generation", training.get("gradient_accumulation_steps", 1))
    if rows * steps % num_generations:
        raise ValueError(
            f"num_generations={num_generations} does not divide the {rows * steps} rows that each of {processes} "
            f"process(es) generates at a time (per_device_train_batch_size={rows} x steps_per_generation={steps})"
        )


def check_vllm(training: dict[str, Any], processes: int) -> None:
    """Refuse settings of vLLM that do not fit the rest of the run.

    Raises:
        ValueError: naming them.
    """
    size = training.get("vllm_tensor_parallel_size", 1)
    if training.get("vllm_mode", "colocate") == "colocate" and processes % size:
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


def server_gpus(training: Mapping[str, Any]) -> int:
    """GPUs of the vLLM server that a training's job starts for it; 0 if it starts none."""
    served = training.get("use_vllm") and training.get("vllm_mode") == "server"
    return training.get("vllm_tensor_parallel_size", 1) if served and "vllm_server_base_url" not in training else 0


def job_gpus(config: Mapping[str, Any], runs: Iterable[Run]) -> int:
    """GPUs that a training's job takes of one machine, with those of its vLLM server: the most of these runs."""
    nodes = config.get("nodes", 1)
    served = max((server_gpus(run.training) for run in runs), default=0)
    return config.get("gpus", 0) // nodes + (served if nodes == 1 else 0)


def check_machines(gpus: int, nodes: int, server: int) -> None:
    """Refuse GPUs that are not divided evenly among machines, and a server beside several or without any of its own.

    Raises:
        ValueError: with the numbers.
    """
    if nodes > 1 and server:
        raise ValueError(f"vllm_mode=server on nodes={nodes}: start the server and name it (vllm_server_base_url)")
    if nodes > 1 and (not gpus or gpus % nodes):
        raise ValueError(f"nodes={nodes}: each machine trains on as many GPUs as the others, but gpus={gpus}")
    if server and not gpus:
        raise ValueError("vllm_mode=server: the server needs GPUs of its own, and so does the training, but gpus=0")


def check_sharding(sharding: str, gpus: int) -> None:
    """Refuse to shard what one process trains: accelerate would go on without a word, and without sharding.

    Raises:
        ValueError: with the number of GPUs.
    """
    if sharding != "none" and gpus < 2:
        raise ValueError(f"sharding={sharding} divides the weights among processes, one on each GPU, but gpus={gpus}")
