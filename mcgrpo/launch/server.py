"""A vLLM server in the background of a job: `python -m mcgrpo.launch.server LOG PROGRAM [ARGS...]`.

It runs until stdin is closed, a pipe from the job: no server outlives its job, however that ends.
"""

import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

ADDRESS = "MCGRPO_VLLM_SERVER"
"""Environment variable of a job: the address of its server."""
PORTS = range(30000, 32768)
"""Below those that Linux hands out to any connection, which could take a port before its server has started."""
STOP_SECONDS = 15.0
"""A server is killed if it has not ended so long after it was told to: SLURM kills a cancelled job after 30 s."""


def start(model: str, log: str, gpus: int = 1, **options: float | None) -> subprocess.Popen:
    """Start a vLLM server for TRL's trainers on the last of the job's GPUs, leave the job the others, set `ADDRESS`.

    Args:
        model: its folder.
        log: file for what it prints.
        gpus: by which its weights are divided (tensor parallelism).
        options: max_model_len and gpu_memory_utilization; None for vLLM's default.

    Returns:
        Its process: the server ends once the stdin of that is closed, or this process has died.
    """
    devices, port = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(","), free_port()
    own = {"VLLM_SERVER_DEV_MODE": "1", "CUDA_VISIBLE_DEVICES": ",".join(devices[-gpus:])}
    os.environ |= {ADDRESS: f"http://127.0.0.1:{port}", "CUDA_VISIBLE_DEVICES": ",".join(devices[:-gpus])}
    # With the settings of `trl vllm-serve`, which TRL deprecates; not `vllm serve`, which asks for the metadata of a
    # package of that name: vLLM's CPU build has another.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--tensor-parallel-size", str(gpus), "--weight-transfer-config", '{"backend": "nccl"}']
    command += ["--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1"]
    for name, value in options.items():
        command += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    # In a session of its own, so that all its processes can be ended.
    watched = [sys.executable, "-m", "mcgrpo.launch.server", log, *command]
    return subprocess.Popen(watched, env={**os.environ, **own}, stdin=subprocess.PIPE, start_new_session=True)


def free_port() -> int:
    """A TCP port that nobody listens on.

    Raises:
        OSError: if there is none.
    """
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("", port))
            return port
    raise OSError(f"all ports from {PORTS[0]} to {PORTS[-1]} are in use")


def main() -> None:
    """Run a program until it ends, and tell the job so, or until stdin is closed; then end all its processes."""
    log, *command = sys.argv[1:]
    with Path(log).open("w") as file:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    while not (closed := select.select([sys.stdin], [], [], 0.2)[0]) and program.poll() is None:
        pass
    if not closed:
        print(f"error: the vLLM server ended (exit code {program.returncode}), see {log}", file=sys.stderr, flush=True)
        os.kill(os.getppid(), signal.SIGTERM)
    program.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(STOP_SECONDS)
    os.killpg(0, signal.SIGKILL)  # this process, too


if __name__ == "__main__":
    main()
