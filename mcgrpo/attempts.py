"""A training that may be killed at any moment: what it leaves behind, and how the next attempt takes it over.

All of it lies in one folder outside the outputs that Snakemake knows of (which it deletes when a job fails), until the
training is finished: `identity.json`, what the attempts must have in common; `run.json`, metrics and rollouts, as far
as they go; `checkpoints/`.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.files import read_json, write_json

LOCK = ".lock"
IDENTITY = "identity.json"
PATIENCE_SECONDS = 60
COMPLETE = "complete.json"
"""Written into a checkpoint last, by the first process, when all processes have written their parts."""


@dataclass(frozen=True)
class Earlier:
    """What the attempts before this one have come to.

    Args:
        started: when the first of them began, in seconds since the epoch; None if there is nothing to go on from.
        seconds: spent on what the last checkpoint holds.
    """

    started: float | None = None
    seconds: float = 0.0


def begin(folder: Path, identity: Mapping[str, Any]) -> Earlier:
    """Take over what earlier attempts left in a folder (see the module), or clear it away if it is of something else.

    Args:
        folder: made if it is not there.
        identity: the run, and all that its result depends on; as JSON.
    """
    file = folder / IDENTITY
    identity = json.loads(json.dumps(identity))
    left = read_json(file) if file.is_file() else None
    changed = [key for key in identity if left and left.get(key) != identity[key]]
    if changed:
        print(f"starting afresh: {', '.join(changed)} changed since {folder} was left", flush=True)
    elif left and (checkpoint := last_checkpoint(folder / "checkpoints")):
        _discard_later(checkpoint)
        return Earlier(**read_json(checkpoint / COMPLETE))
    clear(folder)
    write_json(file, identity)
    return Earlier()


def alone(folder: Path) -> FileLock:
    """A lock that only one process of this machine holds for a training; an orphan of a killed study may, for seconds.

    Raises:
        filelock.Timeout: on entering, when another process still trains after a minute.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / LOCK, timeout=PATIENCE_SECONDS)


def clear(folder: Path) -> None:
    """Remove a training, first what makes it one: of what a crash leaves here nothing is taken over."""
    (folder / IDENTITY).unlink(missing_ok=True)
    for path in folder.glob("*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _discard_later(checkpoint: Path) -> None:
    """Remove checkpoints of later steps, which are not whole: they would pass for newer than those to come."""
    for other in checkpoint.parent.glob("checkpoint-*"):
        if int(other.name.rpartition("-")[2]) > int(checkpoint.name.rpartition("-")[2]):
            shutil.rmtree(other)


def last_checkpoint(folder: Path) -> Path | None:
    """The last checkpoint that was written to its end, other than that of a training's last step.

    From the last step transformers would take one step more.
    """
    found = {}
    for checkpoint in folder.glob("checkpoint-*"):
        if (checkpoint / COMPLETE).is_file():
            state = json.loads((checkpoint / "trainer_state.json").read_text())
            if state["global_step"] < state["max_steps"]:
                found[state["global_step"]] = checkpoint
    return found[max(found)] if found else None
