"""Run a module as `python -m` does, in a process forked from one that has already imported the heavy libraries.

    python -m mcgrpo.launch.preload MODULE [ARGS...]     the output, exit code and effects of `python -m MODULE ARGS...`
    python -m mcgrpo.launch.preload --stop               end the user's servers when their jobs are done

The first client starts a server (`preload_server.py`), which later ones share until it has been idle for
`MCGRPO_PRELOAD_IDLE` seconds (60). With `MCGRPO_PRELOAD=off`, on other systems than Linux, or if the job cannot begin
on a server, the module runs in this process; a job is never run twice. A job is not in its client's terminal session.

A `mcgrpo.generate` of a toy model that took 37 to 54 s under a load of 9 on 2 cores took 1 to 3 s on a server that was
ready (three pairs): nearly all of a short job is its imports.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import resource
import runpy
import select
import signal
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from mcgrpo.launch.private import session_folder

SERVER = Path(__file__).with_name("preload_server.py")
PACKAGE = Path(__file__).parents[1]
BEGIN_SECONDS = 180
"""How long a job may take to begin (the first one waits for the server's imports) before it runs here instead."""

LOOK_SECONDS = 1
"""Python handles a signal that comes just before a blocking call after it: how long such a call may take."""

LIMITS = {getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

# Variables that are read while the interpreter starts or a library is imported: jobs differing in them share nothing.
IMPORT_TIME = re.compile(
    "PYTHON|LD_|LC_|LANG|TZ|TMP|TEMP|HOME|XDG_CACHE_HOME|XDG_CONFIG_HOME|MPL|MALLOC_|GLIBC_|OMP_|KMP_|MKL_|OPENBLAS_|TORCH|PYTORCH|ACCELERATE_|HF_|TRL_"
    "|TRANSFORMERS_|TOKENIZERS_|MLFLOW_LOGGING|MLFLOW_CONFIGURE|MLFLOW_DISABLE|DISABLE_MLFLOW|DO_NOT_TRACK|MCGRPO_PRELOAD"
)


def _code(folder: str | Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and modification time of every module in a folder and below: the server has imported some of them."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and entry.is_file():  # not an editor's lock, a link to nowhere
                yield entry.path, (stat := entry.stat()).st_size, stat.st_mtime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _code(entry.path)


def _key() -> str:
    """A hash of what a job has from its server: interpreter, code, packages, environment, cgroup, limits, signals."""
    packages = [Path(p) for p in sys.path if p.endswith("-packages")]
    files = [(str(p), p.stat().st_mtime_ns) for p in packages if p.exists()], sorted(_code(PACKAGE))
    environment = sorted(item for item in os.environ.items() if IMPORT_TIME.match(item[0]))
    interpreter = (sys.executable, sys.prefix, sys.version, sys.flags, sys.warnoptions, sys._xoptions)
    # A server of another cgroup has other limits, and ends with a Slurm job that is not the client's
    place = (Path("/proc/self/cgroup").read_text(), sorted(os.sched_getaffinity(0)), os.getuid())
    # Forks inherit the limits of the server's first client: memory, files, niceness, scheduling
    limits = [resource.getrlimit(number) for number in sorted(LIMITS)]
    bounds = (limits, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
    # Libraries check at import whether there is a GPU, and later which one
    blind = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
    ignored = [number for number in FORWARDED if signal.getsignal(number) is signal.SIG_IGN]  # so would its forks
    named = repr((interpreter, files, environment, place, bounds, blind, ignored))
    return hashlib.sha256(named.encode(errors="replace")).hexdigest()[:16]


def _connect(path: Path) -> socket.socket | None:
    """Connect to the server at `path`, if one listens there. Packets, not a stream: a request arrives whole or not."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    connection.settimeout(BEGIN_SECONDS)
    return connection


def _connect_or_start(path: Path) -> socket.socket:
    if connection := _connect(path):
        return connection
    with (path.parent / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (connection := _connect(path)):
            _sweep(path.parent)
            _start(path)
            connection = _connect(path)
    if not connection:
        raise ConnectionError(f"the server ended at once, see {path.with_suffix('.log')}")
    return connection


def _sweep(directory: Path) -> None:
    """Remove the files of servers that have ended."""
    for log in directory.glob("*.log"):
        path = log.with_suffix(".sock")
        if connection := _connect(path):
            connection.close()
        else:
            path.unlink(missing_ok=True)
            log.unlink()


def _start(path: Path) -> None:
    """Start a server on a socket that already listens, so that clients queue while it imports."""
    import subprocess  # not needed by the many clients that find a server

    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, path.with_suffix(".log").open("w") as log:
        listener.bind(str(path))
        listener.listen(1024)
        flags = subprocess._args_from_interpreter_flags()
        command = [sys.executable, *flags, str(SERVER), str(path), str(listener.fileno())]
        fds = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "pass_fds": [listener.fileno()]}
        subprocess.run(command, cwd="/", start_new_session=True, **fds)


class _Job:
    """A job on the server at the other end of a connection, from its request to its exit code."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pid: int | None = None

    def begin(self, argv: list[str]) -> None:
        """Hand the job over, and wait until it has begun.

        Raises:
            OSError: if it has not, and never will.
        """
        os.umask(umask := os.umask(0o077))
        request = {"argv": argv, "cwd": str(Path.cwd()), "umask": umask, "env": dict(os.environ), "path": sys.path}
        socket.send_fds(self.connection, [json.dumps(request).encode()], [0, 1, 2])
        kind, _, pid = self.connection.recv(64, socket.MSG_PEEK).partition(b" ")
        if kind != b"begin":
            raise ConnectionError("the server did not begin the job")
        self.pid = int(pid)
        self.connection.recv(64)  # only now, so that `has_begun` is true from when the job has said so
        self.connection.settimeout(LOOK_SECONDS)

    def has_begun(self) -> bool:
        """Whether the job has said that it begins, be it read or not."""
        if self.pid is not None:
            return True
        said, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(said) and self.connection.recv(64, socket.MSG_PEEK).startswith(b"begin")
        except ConnectionError:  # the server has died
            return False

    @contextlib.contextmanager
    def signals_forwarded(self) -> Iterator[None]:
        """Once the job has begun, signals go to it; before, they end this process as ever, and the job never begins."""
        before = {number: signal.getsignal(number) for number in FORWARDED}
        before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

        def forward(number: int, _frame: types.FrameType | None) -> None:
            if self.has_begun():
                with contextlib.suppress(OSError):
                    self.connection.send(bytes([number]))
            else:
                signal.signal(number, before[number])
                signal.raise_signal(number)

        for number in before:
            signal.signal(number, forward)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def follow(self, module: str) -> int:
        """Wait for the job's end, and return the exit code that a shell would report for it."""
        try:
            code = int(self._receive().removeprefix(b"exit "))
        except (OSError, ValueError):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            print(f"mcgrpo.launch.preload: the server died while {module} ran; the job was killed", file=sys.stderr)
            return 1
        if code < 0:
            print(f"mcgrpo.launch.preload: {module} was killed by {signal.Signals(-code).name}", file=sys.stderr)
        return code if code >= 0 else 128 - code

    def _receive(self) -> bytes:
        while True:
            with contextlib.suppress(TimeoutError):
                return self.connection.recv(64)


def run(argv: list[str]) -> int | None:
    """Run `argv` (module and arguments) on a server; return its exit code, or None if it has not begun there."""
    for _attempt in range(2):  # a server may end, having been idle, just as we connect
        try:
            for fd in (0, 1, 2):
                os.fstat(fd)  # were one closed, our socket would take its number
            connection = _connect_or_start(session_folder() / f"{_key()}.sock")
            job = _Job(connection)
            with connection, job.signals_forwarded():
                job.begin(argv)
                return job.follow(argv[0])
        except OSError as error:
            reason = error
    print(f"mcgrpo.launch.preload: running {argv[0]} without a server ({reason})", file=sys.stderr)
    return None


def stop() -> None:
    """Ask every server of this user to take no more jobs, and to end once those it runs have ended."""
    for path in session_folder().glob("*.sock"):
        if connection := _connect(path):
            with connection, contextlib.suppress(ConnectionError):
                connection.send(b"stop")


def main() -> None:
    """Run the module that the command line names, on a server where that can be."""
    match sys.argv[1:]:
        case ["--stop"]:
            return stop()
        case [] | [""]:
            sys.exit("usage: python -m mcgrpo.launch.preload MODULE [ARGS...] | --stop")
        case [option, *_] if option.startswith("-"):
            sys.exit(f"mcgrpo.launch.preload: unknown option {option}")
    module, *arguments = sys.argv[1:]
    served = sys.platform == "linux" and os.environ.get("MCGRPO_PRELOAD") != "off"
    if served and (code := run([module, *arguments])) is not None:
        sys.exit(code)
    sys.argv = ["-m", *arguments]
    sys.modules["__main__"] = types.ModuleType("__main__")
    runpy._run_module_as_main(module)  # what `python -m` itself calls


if __name__ == "__main__":
    main()
