"""The server of `mcgrpo.launch.preload`: imports modules once, then forks a process for each job.

Threads and GPUs do not survive a fork, so it uses none.
"""

import gc
import importlib
import json
import multiprocessing
import os
import runpy
import shutil
import signal
import socket
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

LARGEST_REQUEST = 1 << 20
"""Bytes; Linux limits a packet to less, and a job beyond that runs without the server."""


def preload(modules: str) -> None:
    """Import modules; one that fails is left to the jobs, whose errors say more."""
    gc.disable()
    for module in modules.split():
        with suppress(Exception):
            importlib.import_module(module)
    gc.freeze()
    gc.enable()


def become(message: bytes, fds: list[int], connection: socket.socket, others: list[socket.socket]) -> None:
    """Run a client's job in this process, which was forked for it, as if the client had started it."""
    os.setsid()
    for other in others:
        other.close()
    request = json.loads(message)
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0] = request["cwd"]
    for name in {"numpy.random", "torch.random"} & sys.modules.keys():
        sys.modules[name].seed()  # an unseeded job must not repeat another's numbers
    connection.send(str(os.getpid()).encode())
    connection.close()
    module, *arguments = request["argv"]
    sys.argv = ["-m", *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except (Exception, KeyboardInterrupt):
        traceback.print_exc()
        sys.exit(1)


def serve(listener: socket.socket, modules: str) -> None:
    """Run the clients' jobs until stdin is closed; then kill those that run."""
    jobs = {}  # connection of the client -> process, and a descriptor that is readable once it has ended
    while True:
        ends = {ended: connection for connection, (_, ended) in jobs.items()}
        ready = wait([0, listener, *jobs, *ends])[0]
        if ready == 0:
            break
        if ready is listener:
            preload(modules)
            modules = ""
            connection, process = begin(listener, [listener, *jobs])
            jobs[connection] = process, os.pidfd_open(process.pid)
        else:
            process, ended = jobs.pop(connection := ends.get(ready, ready))
            if ready is connection:  # its client has died
                kill(process)
            process.join()
            os.close(ended)
            with suppress(OSError), connection:
                connection.send(str(process.exitcode).encode())
    for process, _ in jobs.values():
        kill(process)


def begin(listener: socket.socket, others: list[socket.socket]) -> tuple[socket.socket, Any]:
    """Fork a process for the next client; return its connection and the process."""
    connection, _ = listener.accept()
    message, fds, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, 3)
    process = multiprocessing.get_context("fork").Process(target=become, args=(message, fds, connection, others))
    process.start()
    for fd in fds:
        os.close(fd)
    return connection, process


def kill(process: Any) -> None:
    """Kill a job and its children."""
    with suppress(ProcessLookupError):  # it has no group yet
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


if __name__ == "__main__":
    path, fd, modules = sys.argv[1:]
    serve(socket.socket(fileno=int(fd)), modules)
    shutil.rmtree(Path(path).parent, ignore_errors=True)
    os._exit(0)
