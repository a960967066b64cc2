"""Resume a training that was killed: the files of an unfinished training, and how the next attempt uses them.

Until the training is finished, its files are in one folder outside the outputs of Snakemake (which it deletes when a
job fails): `identity.json`, which must be the same for all attempts; `run.json`, metrics and rollouts so far; and
`checkpoints/`. A checkpoint records the checksums of its files, and of metrics and rollouts up to its step. One that
does not match is removed, and the training resumes from the one before, or starts again.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.files import RecordError, as_record, atomic, flush, read_json, write_json
from mcgrpo.study.paths import GROUPS, LOCK, METRICS, ROLLOUTS
from mcgrpo.sums import damage, sha256, sums_of

IDENTITY = "identity.json"
CHECKPOINTS = "checkpoints"
LOCK_SECONDS = 60
CHECKPOINT = re.compile(r"checkpoint-(\d+)")
COMPLETE = "complete.json"
"""Written last, by the first process, when all processes have written their parts of a checkpoint."""
GROWING = (METRICS, GROUPS, ROLLOUTS)
"""Files beside `checkpoints/` that grow at every step."""


@dataclass(frozen=True)
class Earlier:
    """The progress of earlier attempts.

    Args:
        started: start of the first attempt, in seconds since the epoch; None if there is nothing to resume.
        seconds: time spent up to the last checkpoint.
    """

    started: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Complete:
    """`complete.json`: the seconds spent up to a checkpoint, and the SHA-256 of all that it needs.

    `files` are those of the checkpoint; `growing` those beside it, each with its size in bytes at that step.
    """

    max_steps: int
    started: float
    seconds: float
    files: dict[str, str]
    growing: dict[str, list[Any]] = field(default_factory=dict)


def begin(folder: Path, identity: Mapping[str, Any]) -> Earlier:
    """Prepare the folder of earlier attempts to be resumed (see the module), or clear it if its identity differs.

    Args:
        folder: created if it does not exist.
        identity: the run, and everything that its result depends on; JSON-serialisable.
    """
    identity = json.loads(json.dumps(identity))
    left = _left(folder / IDENTITY)
    changed = [key for key in identity if left and left.get(key) != identity[key]]
    if changed:
        print(f"starting again: {', '.join(changed)} changed since {folder} was written", flush=True)
    elif left:
        _remove_damaged(folder)
        if checkpoint := last_checkpoint(folder / CHECKPOINTS):
            return _take_over(folder, checkpoint)
    clear(folder)
    write_json(folder / IDENTITY, identity)
    return Earlier()


def _left(file: Path) -> dict[str, Any] | None:
    """The identity of the training in this folder; None if there is none."""
    try:
        return read_json(file) if file.is_file() else None
    except RecordError as error:
        print(f"starting again: {error}", flush=True)
        return None


def _take_over(folder: Path, checkpoint: Path) -> Earlier:
    """Remove what is later than a checkpoint: later checkpoints would count as newer than those to come, rows twice."""
    complete, steps = _complete(checkpoint), checkpoints(folder / CHECKPOINTS)
    for other, step in steps.items():
        if step > steps[checkpoint]:
            shutil.rmtree(other)
    for name in GROWING:
        if name not in complete.growing:
            (folder / name).unlink(missing_ok=True)
    for name, (size, _) in complete.growing.items():
        with atomic(folder / name) as temporary, (folder / name).open("rb") as file:
            temporary.write_bytes(file.read(size))
    return Earlier(complete.started, complete.seconds)


def seal_checkpoint(checkpoint: Path, max_steps: int, so_far: Earlier) -> None:
    """Mark a checkpoint as complete, once it and the growing files are on disk."""
    files = sums_of(checkpoint)
    growing = {path.name: path for name in GROWING if (path := checkpoint.parents[1] / name).is_file()}
    for path in (*(checkpoint / name for name in files), checkpoint, *growing.values()):
        flush(path)
    sizes = {name: [path.stat().st_size, sha256(path)] for name, path in growing.items()}
    complete = Complete(max_steps, so_far.started, so_far.seconds, files, sizes)
    write_json(checkpoint / COMPLETE, asdict(complete))


def alone(folder: Path) -> FileLock:
    """A lock for a training, held by one process of this machine. An orphan of a killed study may hold it for seconds.

    Raises:
        filelock.Timeout: on entering, if another process still trains after a minute.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / LOCK, timeout=LOCK_SECONDS)


def clear(folder: Path) -> None:
    """Remove a training, its identity first: after a crash here nothing is resumed."""
    (folder / IDENTITY).unlink(missing_ok=True)
    for path in folder.glob("*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def checkpoints(folder: Path) -> dict[Path, int]:
    """The step of each checkpoint in a folder, from its name.

    Not `sort_checkpoints` of transformers, for which a copy of a checkpoint (`checkpoint-9 copy`) is one too.
    """
    matches = {path: CHECKPOINT.fullmatch(path.name) for path in folder.glob("checkpoint-*") if path.is_dir()}
    return {path: int(match[1]) for path, match in matches.items() if match}


def last_checkpoint(folder: Path) -> Path | None:
    """The last complete checkpoint, other than that of the training's last step.

    From the last step transformers would take one step more. Checksums are not verified; `begin` has done so.
    """
    steps = checkpoints(folder)
    left = {steps[path]: path for path, complete in _completed(folder) if steps[path] < complete.max_steps}
    return left[max(left)] if left else None


def _remove_damaged(folder: Path) -> None:
    """Remove complete checkpoints whose files or growing files do not match their checksums."""
    for path in checkpoints(folder / CHECKPOINTS):
        if not (path / COMPLETE).is_file():
            continue
        try:
            fault = _fault(folder, path, _complete(path))
        except RecordError as error:
            fault = str(error)
        if fault:
            print(f"not resuming from {path}: {fault}", flush=True)
            shutil.rmtree(path)


def _fault(folder: Path, checkpoint: Path, complete: Complete) -> str | None:
    if fault := damage(checkpoint, complete.files):
        return fault
    for name, (size, expected) in complete.growing.items():
        if not (folder / name).is_file() or sha256(folder / name, size) != expected:
            return f"{folder / name} has not the rows that it had"
    return None


def _completed(folder: Path) -> Iterator[tuple[Path, Complete]]:
    for path in checkpoints(folder):
        try:
            if (path / COMPLETE).is_file():
                yield path, _complete(path)
        except RecordError:
            continue  # damaged: `begin` removes it and prints that


def _complete(checkpoint: Path) -> Complete:
    path = checkpoint / COMPLETE
    return as_record(Complete, read_json(path), str(path))
