"""What draws the rollouts of training: transformers' `generate`, or vLLM in the trainer's process or on a server.

A study asks for vLLM with `use_vllm` and `vllm_mode`, TRL's names. How vLLM is driven is in `mcgrpo.trainer.vllm`.
"""

import os
import time
from importlib.util import find_spec
from typing import Any

from mcgrpo.study.fit import check_vllm

OPERATIONAL = (
    "vllm_server_base_url",
    "vllm_server_timeout",
    "vllm_gpu_memory_utilization",
    "vllm_enable_sleep_mode",
)
"""Keys of `training` that change how rollouts are drawn, but not which: a training goes on under others."""

PATIENCE_SECONDS = 240.0
"""How long a vLLM server may take to answer; TRL's default for `vllm_server_timeout`."""

HELD: list[Any] = []
"""Locks that are let go when the process ends."""


def settled(training: dict[str, Any]) -> dict[str, Any]:
    """A run's `training` with `use_vllm` turned off where vLLM is not installed, which is said in the log.

    Raises:
        ValueError: for what vLLM would refuse once the model is loaded.
        ConnectionError: if the server that is to draw does not answer in time.
    """
    if not training.get("use_vllm"):
        return training
    first = os.environ.get("RANK", "0") == "0"
    if not find_spec("vllm"):
        if first:
            print("vLLM is not installed: rollouts are drawn with transformers", flush=True)
        return {**training, "use_vllm": False}
    check_vllm(training, int(os.environ.get("WORLD_SIZE", "1")))
    if first and training.get("vllm_mode") == "server" and "vllm_server_base_url" in training:
        hold(training["vllm_server_base_url"])
        wait_for_server(training["vllm_server_base_url"], training.get("vllm_server_timeout", PATIENCE_SECONDS))
    return training


def hold(url: str) -> None:
    """Keep a server to this process until it ends: another training would send it other weights.

    Among the trainings of this machine and user; it waits for one that has the server.
    """
    from filelock import Timeout

    from mcgrpo.launch.locks import lock_of

    lock = lock_of(f"vLLM server {url}")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"waiting for the training that uses the vLLM server at {url}", flush=True)
        lock.acquire()
    HELD.append(lock)


def wait_for_server(url: str, timeout: float) -> None:
    """Return once a vLLM server answers at `url`.

    TRL waits too, but only once the model is loaded, and without an end where something else answers.

    Raises:
        ConnectionError: after `timeout` seconds, with the last answer.
    """
    import requests

    end = time.monotonic() + timeout
    while True:
        try:
            answer = requests.get(f"{url.rstrip('/')}/health", timeout=10)
            if answer.ok:
                return
            problem = f"status {answer.status_code}"
        except requests.RequestException as error:
            problem = type(error).__name__
        if time.monotonic() >= end:
            raise ConnectionError(f"no vLLM server answers at vllm_server_base_url={url} within {timeout} s: {problem}")
        time.sleep(min(2.0, timeout / 10))


def engine_name(args: Any) -> str:
    """What draws a training's rollouts, from its `GRPOConfig`: transformers, vllm-colocate or vllm-server."""
    return f"vllm-{args.vllm_mode}" if args.use_vllm else "transformers"
