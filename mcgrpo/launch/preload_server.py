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

from mcgrpo.launch.parents import die_with_parent

LARGEST_REQUEST = 1 << 20  # bytes; Linux limits a packet to less, and a job beyond that runs without the server


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


def serve(listener: socket.socket, modules: list[str]) -> None:
    """Run the clients' jobs until stdin is closed; then kill those that run."""
    fork = multiprocessing.get_context("fork")
    jobs = {}  # connection of a client -> its process, and a descriptor that is readable once that has ended
    while True:
        ends = {end: connection for connection, (_, end) in jobs.items()}
        if (ready := wait([0, listener, *jobs, *ends])[0]) == 0:
            break
        if ready is listener:
            while modules:
                with suppress(Exception):  # jobs say more about a module that cannot be imported
                    importlib.import_module(modules.pop(0))
                gc.freeze()
            connection, _ = listener.accept()
            message, fds, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, 3)
            process = fork.Process(target=become, args=(message, fds, connection))
            process.start()
            jobs[connection] = process, os.pidfd_open(process.pid)
            for fd in fds:
                os.close(fd)
        else:
            process, end = jobs.pop(connection := ends.get(ready, ready))
            if ready is connection:  # its client has died
                kill(process)
            process.join()
            os.close(end)
            with suppress(OSError), connection:
                connection.send(str(process.exitcode).encode())
    for process, _ in jobs.values():
        kill(process)


def kill(process: multiprocessing.Process) -> None:
    """Kill a job and its children."""
    with suppress(ProcessLookupError):  # it has no group yet
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


if __name__ == "__main__":
    path, number, imports = sys.argv[1:]
    serve(socket.socket(fileno=int(number)), imports.split())
    shutil.rmtree(Path(path).parent, ignore_errors=True)
    os._exit(0)
