"""How large an archive may be, and what its checks may take: the options `--max-...` of `mcgrpo verify`."""

import argparse
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

MIB = 1 << 20
ALWAYS_FREE = 64 * MIB
"""Bytes that an archive may always unpack to, at any ratio."""
DOCUMENT_BYTES = 16 * MIB
"""Bound of a .json file, which is read whole; of a .jsonl file only a line is."""


def _bound(default: int, meaning: str) -> Any:
    return field(default=default, metadata={"help": f"{meaning} (default: {default})"})


@dataclass(frozen=True)
class Limits:
    """Bounds of an archive, which are checked while it is unpacked, and of its checks (the last three)."""

    files: int = _bound(100_000, "files, and the folders that they are in")
    file_mb: int = _bound(256, "MiB of one file, as its header claims")
    total_mb: int = _bound(4096, "MiB of all files together, as they are unpacked")
    ratio: int = _bound(200, "bytes that one compressed byte may unpack to, on the whole; 64 MiB are always free")
    memory_mb: int = _bound(512, "MiB of memory that the checks may take beside the code that runs")
    seconds: int = _bound(30, "seconds of a processor that a check may take, and 5 more for each MiB of files")
    grading_seconds: int = _bound(300, "seconds of the clock that --regrade may take, and 30 more for each MiB")

    def file_bytes(self, name: str) -> int:
        """Bytes that a file of this name may have."""
        return min(self.file_mb * MIB, DOCUMENT_BYTES) if name.endswith(".json") else self.file_mb * MIB

    def unpacked_bytes(self, compressed: int) -> int:
        """Bytes that this number of compressed bytes may unpack to."""
        return min(self.total_mb * MIB, max(ALWAYS_FREE, self.ratio * compressed))


class TookTooLongError(Exception):
    """A check that took more time than it may."""


def option(name: str) -> str:
    """The option of a command line that raises a bound."""
    return f"--max-{name.replace('_', '-')}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command an option for each bound."""
    for each in fields(Limits):
        parser.add_argument(option(each.name), type=int, default=each.default, metavar="N", help=each.metadata["help"])


def limits_of(options: argparse.Namespace) -> Limits:
    """The bounds that a command line gives."""
    return Limits(**{each.name: getattr(options, f"max_{each.name}") for each in fields(Limits)})


def bound_memory(limits: Limits) -> None:
    """Let this process and its children have so much more memory than it has now; beyond it is a MemoryError.

    Less where the system allows less (`ulimit -v`).
    """
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = now + limits.memory_mb * MIB
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


@contextmanager
def bounded(seconds: float, grading: bool = False) -> Iterator[None]:
    """End a block that takes more seconds of a processor in this process, or of the clock where it grades.

    Completions are graded in other processes. To be called in the main thread.

    Raises:
        TookTooLongError: within the block.
    """
    clock, number = (signal.ITIMER_REAL, signal.SIGALRM) if grading else (signal.ITIMER_PROF, signal.SIGPROF)
    unit, name = ("seconds", "grading_seconds") if grading else ("seconds of a processor", "seconds")

    def end(*_: Any) -> None:
        raise TookTooLongError(f"more than {seconds:.0f} {unit} ({option(name)})")

    before = signal.signal(number, end)
    signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(number, before)
