"""Run a module as `python -m` does, in a process forked from one that has imported the heavy libraries already.

A study with `preload: true` starts a server for its jobs: it imports once, then forks a process and a keeper for each.
Threads and GPUs do not survive a fork, so it uses none, and sees no GPU: importing vLLM asks CUDA for them. A job that
it does not begin runs in the client's process.
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
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Collection
from contextlib import suppress
from select import select
from threading import Thread

from mcgrpo.launch.processes import die_with_parent

SOCKET = "MCGRPO_PRELOAD"
"""Environment variable of jobs: the path of their server's socket."""
IMPORTS = (
    "datasets math_verify seaborn trl.trainer.grpo_trainer transformers.models.auto.tokenization_auto "
    "transformers.models.llama.modeling_llama transformers.models.qwen3.modeling_qwen3 mcgrpo.train.job "
    "mcgrpo.train.callbacks mcgrpo.train.released mcgrpo.train.rollout_files mcgrpo.generate.engines"
)
STDIN = 0  # of a server: a pipe, closed when the process that started it has ended
servers: list[subprocess.Popen[bytes]] = []  # that this process has started
fork = multiprocessing.get_context("fork")


def start(imports: str = IMPORTS) -> str:
    """Start a server, which imports when its first job comes and ends with this process; returns its socket's path."""
    folder = tempfile.mkdtemp(prefix="mcgrpo-")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:  # where jobs queue while it imports
        listener.bind(path := f"{folder}/jobs")
        listener.listen(1024)
        fd = listener.fileno()
        command = [sys.executable, "-m", "mcgrpo.launch.preload", folder, str(fd), imports]
        env = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
        # In a session of its own, which ctrl-c does not reach.
        server = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[fd], start_new_session=True, env=env)
        servers.append(server)
    return path


def serve(listener: socket.socket, modules: list[str]) -> None:
    """Run the clients' jobs until stdin is closed."""
    while STDIN not in select([STDIN, listener], [], [])[0]:
        if modules:
            import_all(modules)
        connection, _ = listener.accept()
        with connection:
            fork.Process(target=keep, args=(connection,)).start()
    for keeper in multiprocessing.active_children():
        keeper.join()


def import_all(modules: list[str]) -> None:
    """Import modules, and take them from the list. What they make stays, and is never searched for garbage."""
    gc.disable()
    while modules:
        with suppress(Exception):  # jobs say more about a module that cannot be imported
            importlib.import_module(modules.pop(0))
    gc.freeze()
    gc.enable()


def keep(connection: socket.socket) -> None:
    """Run the job of a client, and kill it with its children where the client dies or stdin is closed."""
    die_with_parent()
    message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 3)  # bytes: more than Linux lets a packet have
    job = fork.Process(target=become, args=(message, fds, connection))
    job.start()
    end = end_of(job)
    if end not in select([end, connection, STDIN], [], [])[0]:
        with suppress(ProcessLookupError):  # it has no group yet
            os.killpg(job.pid, signal.SIGKILL)
        job.kill()
    job.join()
    with suppress(OSError):
        connection.send(str(job.exitcode).encode())
    os._exit(0)


def end_of(job: multiprocessing.Process) -> int:
    """What can be read once the job has ended."""
    try:
        return os.pidfd_open(job.pid)
    except (AttributeError, OSError):  # some builds of Python, such as conda's, and Linux before 5.3
        return job.sentinel  # processes that the job has forked keep it open, too


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
    try:
        run_here(request["argv"])
    except (Exception, KeyboardInterrupt):
        traceback.print_exc()
        sys.exit(1)


def run_here(argv: list[str]) -> None:
    """Run a module (and its arguments) in this process."""
    module, *arguments = argv
    sys.argv = ["-m", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def run_there(path: str, argv: list[str]) -> int | None:
    """Run a module (and its arguments) on a server; return its exit code, or None if it has not begun there.

    SIGINT and SIGTERM are passed on to the job; if this process dies, the job is killed.
    """
    passed_on = signal.SIGINT, signal.SIGTERM
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # they wait for `pass_on`
        try:
            connection.connect(path)
            request = json.dumps({"argv": argv, "cwd": os.path.abspath("."), "env": dict(os.environ)})  # noqa: PTH100
            socket.send_fds(connection, [request.encode()], [0, 1, 2])
            pid = int(connection.recv(64))
        except (OSError, ValueError) as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            print(f"mcgrpo.launch: {argv[0]} runs without the preload server ({error})", file=sys.stderr)
            return None
        Thread(target=pass_on, args=(passed_on, pid), daemon=True).start()
        try:
            code = int(connection.recv(64))
        except (OSError, ValueError):
            sys.exit(f"mcgrpo.launch: the preload server died, and {argv[0]} with it")
    if code < 0:
        print(f"mcgrpo.launch: {argv[0]} was killed by {signal.Signals(-code).name}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def pass_on(numbers: Collection[int], group: int) -> None:
    """Pass signals that all threads block on to a process group; a handler misses one that comes just before `recv`."""
    while True:
        number = signal.sigwait(numbers)
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(group, number)


def run(argv: list[str]) -> None:
    """Run a module (and its arguments), on the server if there is one."""
    if (path := os.environ.pop(SOCKET, "")) and (code := run_there(path, argv)) is not None:
        sys.exit(code)
    run_here(argv)


if __name__ == "__main__":
    folder, number, imports = sys.argv[1:]
    serve(socket.socket(fileno=int(number)), imports.split())
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
