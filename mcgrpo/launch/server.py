"""Run a program beside a vLLM server of its own: `python -m mcgrpo.launch.server SERVER PROGRAM [ARGS...]`.

SERVER is a `Server` as JSON. It has the last of the GPUs that CUDA_VISIBLE_DEVICES names, the program the others. The
program starts at once, waits for the server itself, and finds its address in MCGRPO_VLLM_SERVER. Whichever ends first,
of the server, the program and this process, however that ends, takes the others along.
"""

import contextlib
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mcgrpo.launch.parents import PR_SET_PDEATHSIG

ADDRESS = "MCGRPO_VLLM_SERVER"
PORTS = range(30000, 32768)
"""Of servers: above those of `mcgrpo.launch.nodes`, below those that Linux hands out to any connection."""
POLL_SECONDS = 0.2
STOP_SECONDS = 15.0
"""A server is killed if it has not ended so long after it was told to: SLURM kills a cancelled job after 30 s."""


@dataclass(frozen=True)
class Server:
    """A vLLM server, as TRL's trainers need it.

    Args:
        model: its folder.
        log: file for what it prints.
        gpus: by which its weights are divided (tensor parallelism).
        everywhere: whether other machines reach it, too.
        max_model_len, gpu_memory_utilization: vLLM's, and its defaults where they are None.
    """

    model: str
    log: str
    gpus: int = 1
    everywhere: bool = False
    max_model_len: int | None = None
    gpu_memory_utilization: float | None = None

    def command(self, port: int) -> list[str]:
        """Its command line, with the settings of `trl vllm-serve`, which TRL deprecates."""
        # Not `vllm serve`, which asks for the metadata of a package of that name: vLLM's CPU build has another.
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", self.model]
        command += ["--host", "0.0.0.0" if self.everywhere else "127.0.0.1", "--port", str(port)]
        command += ["--tensor-parallel-size", str(self.gpus), "--weight-transfer-config", '{"backend": "nccl"}']
        command += ["--logprobs-mode", "processed_logprobs", "--max-logprobs", "-1"]
        for name in ("max_model_len", "gpu_memory_utilization"):
            if (value := getattr(self, name)) is not None:
                command += [f"--{name.replace('_', '-')}", str(value)]
        return command


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


def start(command: list[str], **options: object) -> subprocess.Popen:
    """Start a program that is told to end (SIGTERM) when this process has died, and that holds its GPUs' locks, too."""
    parent = os.getpid()

    def end_with_parent() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(command, close_fds=False, preexec_fn=end_with_parent, **options)


def stop(server: subprocess.Popen) -> None:
    """End a server and all processes of its own, by force where it takes too long."""
    server.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def beside(server: subprocess.Popen, program: subprocess.Popen) -> int | None:
    """The exit code of the program; None if the server has ended first."""
    while (code := program.poll()) is None:
        if server.poll() is not None:
            program.terminate()
            program.wait()
            return None
        time.sleep(POLL_SECONDS)
    return code


def main() -> int:
    """Run the program; returns its exit code."""
    settings, command = Server(**json.loads(sys.argv[1])), sys.argv[2:]
    devices = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    port, log = free_port(), Path(settings.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    os.environ[ADDRESS] = f"http://{socket.gethostname() if settings.everywhere else '127.0.0.1'}:{port}"
    own = {"VLLM_SERVER_DEV_MODE": "1", "CUDA_VISIBLE_DEVICES": ",".join(devices[-settings.gpus :])}
    with log.open("w") as file:  # a session of its own, so that all its processes can be ended
        server = start(
            settings.command(port), env={**os.environ, **own}, stdout=file, stderr=file, start_new_session=True
        )
    try:
        # Without others the program has its own on other machines, and SLURM names them there.
        others = {"CUDA_VISIBLE_DEVICES": ",".join(rest)} if (rest := devices[: -settings.gpus]) else {}
        program = start(command, env={**os.environ, **others})
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: program.terminate())
        code = beside(server, program)
    finally:
        stop(server)
    if code is None:
        print(f"error: the vLLM server ended (exit code {server.returncode}), see {log}", file=sys.stderr)
        return 1
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
