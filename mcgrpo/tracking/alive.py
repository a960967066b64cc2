"""Whether a process works on an unfinished training: by its lock, or by when its files last changed."""

import fcntl
import json
import platform
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

from mcgrpo.files import RecordError, tail
from mcgrpo.study.paths import LOCK, METRICS, RECORD, SYSTEM
from mcgrpo.tracking import MACHINE

FILES = (RECORD, METRICS, SYSTEM)
"""What a training writes to while it runs: a row per step, and every ten seconds if it is tracked."""
SILENCE_SECONDS, SILENCE_STEPS = 90.0, 5
"""A training on another machine whose files have not changed for so long, in seconds and in steps, has stopped."""


def is_alive(folder: Path, now: float | None = None) -> bool:
    """Whether a process works on the training in a folder.

    It holds a lock (see `mcgrpo.train.attempts.alone`). A training on another machine of a cluster may hold one that
    cannot be seen here: it counts as alive while its files change.

    Args:
        now: in seconds since the epoch; by default the current time.

    Raises:
        RecordError: see `last_steps`.
    """
    try:
        with (folder / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # NFS allows only this on a file open for reading
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:  # a file system without locks
        pass
    else:
        with suppress(FileNotFoundError):
            if (folder / MACHINE).read_text() == platform.node():
                return False
    silent = (time.time() if now is None else now) - _written(folder)
    return silent < SILENCE_SECONDS or silent < SILENCE_STEPS * (pace(last_steps(folder)) or 0.0)


def last_steps(folder: Path) -> list[tuple[int, float]]:
    """Step and time of the last rows of `metrics.jsonl`, other than one that is still being written.

    Raises:
        RecordError: for a row without them.
    """
    lines = tail(folder / METRICS).splitlines(keepends=True)
    rows = [line for line in lines if line.startswith(b'{"step"') and line.endswith(b"\n")]
    try:
        return [(row["step"], row["time"]) for row in map(json.loads, rows)]
    except (ValueError, KeyError) as error:
        raise RecordError(f"{folder / METRICS}: not rows with step and time: {error!r}") from None


def pace(steps: list[tuple[int, float]]) -> float | None:
    """The seconds from one step to the next; None for fewer than two."""
    return median(after - before for (_, before), (_, after) in pairwise(steps)) if steps[1:] else None


def _written(folder: Path) -> float:
    """When one of a training's files last changed; 0 where there are none."""
    times = [0.0]
    for name in FILES:
        with suppress(FileNotFoundError):
            times.append((folder / name).stat().st_mtime)
    return max(times)
