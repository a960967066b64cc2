"""Calls of Snakemake in a folder: one that was killed is cleared up after, one that runs is not disturbed.

`python -m mcgrpo.launch.calls snakemake --configfile STUDY.yaml ...`, as `make mini` does, runs the rest as a command.
Before, where an earlier call was killed and none of its processes lives, it removes the lock that Snakemake has left
(`snakemake --unlock`). Where one lives, it ends with one line.

Each call holds a file of its own locked as long as its process lives, however that ends.
"""

import atexit
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from filelock import FileLock

from mcgrpo import command_line
from mcgrpo.launch.environment import STUDY_FILES, named

FOLDER = Path(".snakemake/calls")
DYING_SECONDS = 30
"""Of jobs and other processes whose call was killed: until then they may be about to end. One that was importing
notices only after that, up to 20 seconds later on slow machines."""
_held: list[int] = []
"""The file of this process, open."""


class CallError(ValueError):
    """An earlier call, or a job of one, still runs; one line."""


class Call(NamedTuple):
    """A call that has not ended, or was killed; `is_elsewhere` if its jobs may run on other machines."""

    path: Path
    host: str
    process: int
    files: list[str]
    is_elsewhere: bool
    is_alive: bool

    @property
    def name(self) -> str:
        """The process, and its machine if that is another one."""
        return f"process {self.process}" + ("" if self.host == socket.gethostname() else f" on {self.host}")


def begin(files: Sequence[str], is_elsewhere: bool = False) -> None:
    """Say that this process is a call for a study of these files; where nothing can be written, it is not said."""
    path = FOLDER / f"{socket.gethostname()}-{os.getpid()}.json"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        with suppress(BlockingIOError):  # this process has it already: it was another program before
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held.append(file)
        path.write_text(json.dumps({"files": list(files), "is_elsewhere": is_elsewhere}))
        atexit.register(_end, path.absolute(), os.getpid())


def _end(path: Path, process: int) -> None:
    if os.getpid() == process:  # not one that was forked
        path.unlink(missing_ok=True)


def others() -> Iterator[Call]:
    """The other calls in this folder that run or were killed."""
    for path in sorted(FOLDER.glob("*-*.json")):
        host, _, process = path.stem.rpartition("-")
        with suppress(OSError, ValueError, KeyError):
            if (host, int(process)) != (socket.gethostname(), os.getpid()):
                content = json.loads(path.read_text())
                yield Call(path, host, int(process), content["files"], content["is_elsewhere"], _is_locked(path))


def settled(seconds: float) -> list[Call]:
    """The `others`; if one was killed, after at most that time for what it may have started, such as its `--unlock`."""
    deadline = time.monotonic() + seconds
    while True:
        calls = list(others())
        if {call.is_alive for call in calls} != {True, False} or time.monotonic() > deadline:
            return calls
        time.sleep(0.1)


def _is_locked(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def jobs() -> list[int]:
    """Processes of this machine that are jobs of a study in this folder, as far as they may be looked at."""
    found, here = [], Path.cwd()
    ours = {os.getpid(), *(each.pid for each in psutil.Process().parents())}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid not in ours and Path(process.cwd()) == here and STUDY_FILES in process.environ():
                found.append(process.pid)
    return found


def left_after(seconds: float) -> list[int]:
    """The `jobs` that are still there after that time; those that die with Snakemake need some."""
    deadline = time.monotonic() + seconds
    while (left := jobs()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def beside(files: Sequence[str], calls: Iterable[Call] | None = None) -> str:
    """What to say where a call for a study of these files runs; empty where none does."""
    running = (each for each in (others() if calls is None else calls) if each.is_alive and each.files == list(files))
    told = (f"{call.name} makes this study in this folder: wait until it has ended, or end it (Ctrl-C)"
            for call in running)  # fmt: skip
    return next(told, "")


def clear(files: Sequence[str], unlock: Sequence[str]) -> None:
    """Remove what a killed call has left, if nothing of it runs.

    Args:
        files: of the study that is called for.
        unlock: the command that removes Snakemake's lock.

    Raises:
        CallError: for a call of this study that runs; for a killed one whose jobs run, beside which another runs, or
            whose lock cannot be removed.
    """
    calls = settled(DYING_SECONDS)
    running, killed = [each for each in calls if each.is_alive], [each for each in calls if not each.is_alive]
    if told := beside(files, running):
        raise CallError(told)
    if not killed:
        return
    if running:
        raise CallError(f"{killed[0].name} was killed, and {running[0].name} runs here: call again when it has ended")
    for call in killed:
        if call.is_elsewhere or call.host != socket.gethostname():
            told = f"{call.name} has not ended well, and its jobs may run on another machine"
            print(f"{told}: remove {call.path} once none does")
            return
    if left := left_after(DYING_SECONDS):
        numbers = ", ".join(map(str, left))
        raise CallError(f"{killed[0].name} was killed, and jobs of it run (processes {numbers}): wait, or end them")
    done = subprocess.run(unlock, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        why = (done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise CallError(f"{killed[0].name} was killed, and its lock could not be removed: {why}")
    print(f"{killed[0].name} was killed: its lock is removed, and the study goes on", flush=True)
    for call in killed:
        call.path.unlink(missing_ok=True)


def study_files(words: Sequence[str]) -> list[str]:
    """What follows `--configfile` on a command line of Snakemake, by `mcgrpo.launch.environment.named`."""
    after = list(words[words.index("--configfile") + 1 :]) if "--configfile" in words else []
    end = next((place for place, word in enumerate(after) if word.startswith("-")), len(after))
    return named(after[:end])


def main() -> None:
    """Run a command of Snakemake, after an earlier call that was killed."""
    words = sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with command_line.errors(CallError), FileLock(FOLDER / ".lock"):
        place = words.index("--configfile") if "--configfile" in words else len(words)  # what follows `--` are targets
        clear(files := study_files(words), [*words[:place], "--unlock", *words[place:]])
        begin(files)
    os.environ[STUDY_FILES] = json.dumps(files)
    for file in _held:
        os.set_inheritable(file, True)  # by the program that this process becomes, which gives it to no job
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
