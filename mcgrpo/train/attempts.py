"""Resume a training that was killed: the files of an unfinished training, and how the next attempt uses them.

Until the training is finished, its files are in one folder outside the outputs of Snakemake (which it deletes when a
job fails): `identity.json`, which must be the same for all attempts; `run.json`, metrics and rollouts so far; and
`checkpoints/`. A checkpoint also has the metrics and rollouts up to its step, and the checksums of all its files. One
that does not match them is removed, and the training starts again, or resumes from another that was kept.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.files import RecordError, as_record, flush, read_json, write_json
from mcgrpo.study.paths import GROUPS, LOCK, METRICS, ROLLOUTS
from mcgrpo.sums import damage, sums_of

IDENTITY = "identity.json"
CHECKPOINTS = "checkpoints"
LOCK_SECONDS = 60
EARLIER = "earlier.json"
COMPLETE = "complete.json"
"""Name -> SHA-256 of a checkpoint's files, written last, when all processes have written their parts of it."""
GROWING = (METRICS, GROUPS, ROLLOUTS)
"""Files beside `checkpoints/` that grow at every step."""


@dataclass(frozen=True)
class Earlier:
    """The progress of earlier attempts, up to a checkpoint: its `earlier.json`.

    Args:
        started: start of the first attempt, in seconds since the epoch; None if there is nothing to resume.
        seconds: time spent up to the checkpoint.
    """

    started: float | None = None
    seconds: float = 0.0


def begin(folder: Path, identity: Mapping[str, Any]) -> Earlier:
    """Prepare the folder of earlier attempts to be resumed (see the module), or clear it if its identity differs.

    Args:
        folder: created if it does not exist.
        identity: the run, and everything that its result depends on; JSON-serialisable.
    """
    identity = json.loads(json.dumps(identity))
    left = _identity(folder / IDENTITY)
    if changed := [key for key in identity if left and left.get(key) != identity[key]]:
        print(f"starting again: {', '.join(changed)} changed since {folder} was written", flush=True)
    elif left:
        _remove_damaged(folder / CHECKPOINTS)
        if checkpoint := last_checkpoint(folder / CHECKPOINTS):
            for name in GROWING:
                (folder / name).unlink(missing_ok=True)
                if (checkpoint / name).exists():
                    shutil.copy(checkpoint / name, folder)
            return as_record(Earlier, read_json(checkpoint / EARLIER), str(checkpoint / EARLIER))
    clear(folder)
    write_json(folder / IDENTITY, identity)
    return Earlier()


def _identity(path: Path) -> dict[str, Any]:
    try:
        return read_json(path) if path.is_file() else {}
    except RecordError as error:
        print(f"starting again: {error}", flush=True)
        return {}


def _remove_damaged(folder: Path) -> None:
    """Remove checkpoints that are not complete, or do not match their checksums."""
    for path in checkpoints(folder):
        try:
            sums = read_json(path / COMPLETE)
            fault = damage(path, sums) if sums else f"{path / COMPLETE} lists no files"
        except RecordError as error:
            fault = str(error)
        if fault:
            print(f"not resuming from {path}: {fault} (sums: {COMPLETE})", flush=True)
            shutil.rmtree(path)


def seal_checkpoint(checkpoint: Path, so_far: Earlier) -> None:
    """Mark a checkpoint as complete, once all that it needs is in it and on disk."""
    for name in GROWING:
        if (path := checkpoint.parents[1] / name).is_file():
            shutil.copy(path, checkpoint)
    write_json(checkpoint / EARLIER, asdict(so_far))
    for path in (*checkpoint.rglob("*"), checkpoint):
        flush(path)
    write_json(checkpoint / COMPLETE, sums_of(checkpoint))


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, by their steps.

    Not `sort_checkpoints` of transformers, for which a copy of a checkpoint (`checkpoint-9 copy`) is one too.
    """
    steps = {path: path.name.removeprefix("checkpoint-") for path in folder.glob("checkpoint-*")}
    return sorted((path for path, step in steps.items() if step.isdecimal()), key=lambda path: int(steps[path]))


def last_checkpoint(folder: Path) -> Path | None:
    """The last complete checkpoint. Checksums are not verified; `begin` has done so."""
    complete = [path for path in checkpoints(folder) if (path / COMPLETE).is_file()]
    return complete[-1] if complete else None


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
