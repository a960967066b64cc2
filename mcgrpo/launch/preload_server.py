"""The server of `mcgrpo.launch.preload`: imports modules once, then forks a process for each job, and its keeper.

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

from mcgrpo.launch.parents import die_with_parent

STDIN = 0
"""Closed when the process that started the server has ended."""
LARGEST_REQUEST = 1 << 20  # bytes; Linux limits a packet to less, and a job beyond that runs without the server
fork = multiprocessing.get_context("fork")


def serve(listener: socket.socket, modules: list[str]) -> None:
    """Run the clients' jobs until stdin is closed."""
    while STDIN not in wait([STDIN, listener]):
        while modules:
            with suppress(Exception):  # jobs say more about a module that cannot be imported
                importlib.import_module(modules.pop(0))
            gc.freeze()
        connection, _ = listener.accept()
        with connection:
            fork.Process(target=keep, args=(connection,)).start()
    for keeper in multiprocessing.active_children():
        keeper.join()


def keep(connection: socket.socket) -> None:
    """Run the job of a client, and kill it with its children where the client dies or stdin is closed."""
    die_with_parent()
    message, fds, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, 3)
    job = fork.Process(target=become, args=(message, fds, connection))
    job.start()
    end = os.pidfd_open(job.pid)
    if end not in wait([end, connection, STDIN]):
        with suppress(ProcessLookupError):  # it has no group yet
            os.killpg(job.pid, signal.SIGKILL)
        job.kill()
    job.join()
    with suppress(OSError):
        connection.send(str(job.exitcode).encode())
    os._exit(0)


def become(message: bytes, fds: list[int], connection: socket.socket) -> None:
    """Run a client's job in this process, which was forked for it, as if the client had started it."""
    os.setsid()
    die_with_parent()
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


if __name__ == "__main__":
    path, number, imports = sys.argv[1:]
    serve(socket.socket(fileno=int(number)), imports.split())
    shutil.rmtree(Path(path).parent, ignore_errors=True)
    os._exit(0)
