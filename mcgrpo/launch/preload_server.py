"""The server behind `mcgrpo.launch.preload`: imports the heavy libraries once, then forks a process for every job.

A server is for one state of this package's files: when one is edited, clients start another (`preload._key`). It must
not have threads of its own nor touch a GPU: neither survives a fork.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
import types
import weakref
from pathlib import Path
from typing import Any, NoReturn

PRELOAD = (
    "numpy torch datasets math_verify seaborn trl:GRPOConfig,GRPOTrainer "
    "transformers:AutoConfig,AutoModelForCausalLM,AutoTokenizer,PreTrainedTokenizerFast,Qwen3ForCausalLM,Trainer "
    "mcgrpo.train.job mcgrpo.train.callbacks mcgrpo.train.released mcgrpo.train.rollout_files mcgrpo.grade.rewards "
    "mcgrpo.generate.complete mcgrpo.generate.engines"
)
"""What is imported, `module` or `module:attribute,attribute` (lazy modules import on access); `MCGRPO_PRELOAD` wins."""

# Set while importing, gone from the jobs: pyarrow's allocator starts no thread, `is_available` does not start CUDA.
FORK_SAFE = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
LARGEST_REQUEST = 1 << 20
"""Bytes; a packet socket's buffer (`net.core.wmem_max`) is smaller, and a client that would exceed it is told so."""


def preload(modules: str) -> None:
    """Import `modules`; one that fails is left to the jobs, which fail with a message of their own if they need it.

    Raises:
        SystemExit: if an import has made this process unfit to fork.
    """
    for module, _, names in (item.partition(":") for item in modules.split()):
        try:
            loaded = importlib.import_module(module)
            for name in filter(None, names.split(",")):
                getattr(loaded, name)
        except Exception:
            traceback.print_exc()
    if "transformers" in sys.modules:
        _build_conversions()
    if "importlib.metadata" in sys.modules:
        _read_metadata_once()
    _leave_ends_to_the_server()
    sys.path_importer_cache.clear()  # else each job invalidates the 700 of all imports, and copies their memory for it
    if threading.active_count() > 1:
        sys.exit(f"an import started threads: {threading.enumerate()}")
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        sys.exit("an import initialised CUDA")


def _build_conversions() -> None:
    """Build what transformers keeps from a process's first `from_pretrained`: 700 regular expressions, 0.4 s of CPU."""
    with contextlib.suppress(Exception):  # not public; a job without it builds it
        importlib.import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("")


def _read_metadata_once() -> None:
    """Keep a package's metadata: accelerate parses peft's 16 times in a training, which is 2 % of a small one's time.

    A server is for one state of the packages.
    """
    metadata = sys.modules["importlib.metadata"]
    metadata.metadata = functools.cache(metadata.metadata)


def _leave_ends_to_the_server() -> None:
    """Keep jobs from doing at their end what imports have left for this process's: torch takes 0.1 s for it.

    It deletes its libraries of operators, one by one, and makes a table of compile times that nobody reads.
    """
    for finalizer in [*weakref.finalize._registry]:
        finalizer.atexit = False
    if dynamo := sys.modules.get("torch._dynamo.utils"):
        atexit.unregister(dynamo.dump_compile_times)


class Server:
    """The loop that accepts jobs and reaps them. A client's connection is open exactly as long as it waits."""

    def __init__(self, listener: socket.socket, path: Path, idle_seconds: float, environment: dict[str, str]) -> None:
        self.listener, self.path, self.idle_seconds, self.environment = listener, path, idle_seconds, environment
        self.selector = selectors.PollSelector()
        self.selector.register(listener, selectors.EVENT_READ, self._accept)
        self.jobs: dict[socket.socket, int] = {}

    def serve(self) -> dict[str, Any] | None:
        """Return None when done (idle or stopped), and in each forked process the request of the job it is to run."""
        while waiting_for := self.selector.get_map():
            idle = len(waiting_for) == 1 and self.listener.fileno() != -1
            ready = self.selector.select(self.idle_seconds if idle else None)
            if not ready:
                self._close_listener()
            for key, _ in ready[:1]:  # handling one event may close what others speak of
                if request := key.data(key.fileobj):
                    return request
        return None

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, self._read)

    def _close_listener(self) -> None:
        """Take no more clients but those that are connected already; the next one starts a new server."""
        if self.listener.fileno() == -1:
            return
        self.path.unlink(missing_ok=True)
        self.selector.unregister(self.listener)
        self.listener.setblocking(False)
        with self.listener, contextlib.suppress(BlockingIOError):
            while True:
                self._accept(self.listener)

    def _read(self, connection: socket.socket) -> dict[str, Any] | None:
        try:
            message, fds, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, 3)
        except ConnectionError:
            message, fds = b"", []
        if not message:
            self._hang_up(connection)
        elif connection in self.jobs:
            _send_signal(self.jobs[connection], message[0])
        elif message == b"stop":
            self._hang_up(connection)
            self._close_listener()
        else:
            return self._fork(connection, message, fds)
        return None

    def _hang_up(self, connection: socket.socket) -> None:
        """A client has gone: its job goes too."""
        self.selector.unregister(connection)
        connection.close()
        if pid := self.jobs.pop(connection, None):
            _send_signal(pid, signal.SIGKILL)

    def _fork(self, connection: socket.socket, message: bytes, fds: list[int]) -> dict[str, Any] | None:
        try:
            request = json.loads(message)
            pid = os.fork()
        except (OSError, ValueError):  # out of processes, or a request beyond LARGEST_REQUEST
            traceback.print_exc()
            self._hang_up(connection)
            pid = None
        if pid == 0:
            self._become_job(connection, request, fds)
            return request
        for fd in fds:
            os.close(fd)
        if pid:
            self.jobs[connection] = pid
            reap = functools.partial(self._reap, connection, pid)
            self.selector.register(os.pidfd_open(pid), selectors.EVENT_READ, reap)
        return None

    def _become_job(self, connection: socket.socket, request: dict[str, Any], fds: list[int]) -> None:
        try:
            os.setsid()
            for other in [key.fileobj for key in self.selector.get_map().values()]:
                if other is not connection:
                    os.close(other) if isinstance(other, int) else other.close()
            adopt(request | {"env": self.environment | request["env"]}, fds)
            # Sent by the job, which held the connection open until now: no client can miss that a job has begun.
            connection.send(b"begin %d" % os.getpid())
            connection.close()
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _reap(self, connection: socket.socket, pid: int, pidfd: int) -> None:
        self.selector.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        if self.jobs.pop(connection, None):
            with contextlib.suppress(OSError):
                connection.send(b"exit %d" % os.waitstatus_to_exitcode(status))
            self.selector.unregister(connection)
            connection.close()


def _send_signal(pid: int, number: int) -> None:
    """Signal a job that is not reaped yet; SIGINT (as a terminal does) and SIGKILL go to all its group."""
    if number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):  # forked a moment ago, it may not have its group yet
            return os.killpg(pid, number)
    os.kill(pid, number)


def adopt(request: dict[str, Any], fds: list[int]) -> None:
    """Make this forked process look like one that the client has started by itself."""
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[:] = request["path"]
    module, *arguments = request["argv"]
    sys.argv = ["-m", *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    importlib.invalidate_caches()
    # `random` reseeds itself after a fork. An unseeded job must not repeat another's numbers.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
    gc.enable()


def run_to_end(module: str) -> NoReturn:
    """Run `module` as `python -m` does, and end this process with its exit code.

    The interpreter's own end would take the shared modules apart, copying their memory first: 0.4 s for nothing.
    """
    code: object = 0
    try:
        sys.modules["__main__"] = types.ModuleType("__main__")
        runpy._run_module_as_main(module)  # what `python -m` itself calls
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next  # without this function, as in `python -m`
        sys.excepthook(type(error), error, error.__traceback__)
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # joins the job's threads
    atexit._run_exitfuncs()
    for thing in gc.get_objects():
        if issubclass(type(thing), io._io._IOBase):  # files left open; frozen ones, the server's, are not listed
            with contextlib.suppress(OSError, ValueError):
                thing.flush()
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"{module}: output was lost: {error}", file=sys.stderr)
        code = 120  # as the interpreter does
    ctypes.CDLL(None).fflush(None)
    os._exit(code & 0xFF)


def main() -> None:
    """Detach, import, serve; in a forked process, run its job to the interpreter's normal end."""
    path, listener = Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    if os.fork():
        os._exit(0)  # the server is nobody's child: no client waits for it or takes it along
    idle_seconds = float(os.environ.get("MCGRPO_PRELOAD_IDLE", "60"))
    start = time.perf_counter()
    here, checkout = str(Path(__file__).parent), str(Path(__file__).parents[2])
    sys.path[:] = [checkout, *(entry for entry in sys.path if entry != here)]  # each job has a path of its own
    from mcgrpo.launch import huge_pages

    gc.disable()
    before = dict(os.environ)
    os.environ.update(FORK_SAFE)
    preload(os.environ.get("MCGRPO_PRELOAD", PRELOAD))
    for name in FORK_SAFE:
        os.environ.pop(name)
    set_by_imports = {name: value for name, value in os.environ.items() if name not in before}
    gc.freeze()
    huge_pages.collapse()
    native = sorted(Path(task, "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())
    print(f"ready after {time.perf_counter() - start:.1f} s; threads: {native}; set: {set_by_imports}", flush=True)
    if request := Server(listener, path, idle_seconds, set_by_imports).serve():
        run_to_end(request["argv"][0])


if __name__ == "__main__":
    main()
