"""The engine that draws rollouts in training: transformers' `generate`, or vLLM, colocated or on a server.

A study selects vLLM with TRL's `use_vllm` and `vllm_mode`. The trainer calls it through `mcgrpo.trainer.vllm`.
"""

import os
import time
from importlib.util import find_spec
from typing import Any

from mcgrpo.launch import ports
from mcgrpo.launch.gpus import lock_of
from mcgrpo.launch.processes import is_first
from mcgrpo.study.fit import check_vllm

OPERATIONAL = (
    "vllm_server_base_url",
    "vllm_server_timeout",
    "vllm_gpu_memory_utilization",
    "vllm_enable_sleep_mode",
)
"""Keys of `training` that do not change which rollouts are drawn: a training may resume with other values."""
QUEUE_SECONDS = 30 * 24 * 3600
"""Seconds that the other processes of a training wait for the first, which waits until a server is free.

It is that of every later collective, too: a process that hangs is not noticed.
"""
HELD: list[Any] = []
"""Locks that are released when the process ends."""


def with_installed(training: dict[str, Any]) -> dict[str, Any]:
    """A run's `training`, with `use_vllm` turned off (and a message) if vLLM is not installed.

    Raises:
        ValueError: for values that vLLM would refuse once the model is loaded.
    """
    if not training.get("use_vllm"):
        return training
    if not find_spec("vllm"):
        if is_first():
            print("vLLM is not installed: rollouts are drawn with transformers", flush=True)
        return {**training, "use_vllm": False}
    check_vllm(training, int(os.environ.get("WORLD_SIZE", "1")))
    return training


def take_server(args: Any) -> None:
    """In server mode (of a `GRPOConfig`), wait until no other training uses the server, and it answers.

    The weights are sent through a port that no other training of this machine takes; TRL's is the same for all.

    Raises:
        ConnectionError: if the server does not answer in time.
        ValueError: if no port is free.
    """
    if args.use_vllm and args.vllm_mode == "server" and is_first():
        hold(args.vllm_server_base_url)
        wait_for_server(args.vllm_server_base_url, args.vllm_server_timeout)
        args.vllm_group_port, lock = ports.take()
        HELD.append(lock)


def hold(url: str) -> None:
    """Lock a server until this process ends, among those of this machine and user: it holds one training's weights."""
    print(f"takes the vLLM server at {url}, once no other training uses it", flush=True)
    HELD.append(lock_of(f"vLLM server {url}").acquire())


def wait_for_server(url: str, timeout: float) -> None:
    """Return once a vLLM server answers at `url`.

    TRL also waits, but only once the model is loaded, and forever if something else answers.

    Raises:
        ConnectionError: after `timeout` seconds, with the last response.
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
    """The name of the engine for a `GRPOConfig`: transformers, vllm-colocate or vllm-server."""
    return f"vllm-{args.vllm_mode}" if args.use_vllm else "transformers"
