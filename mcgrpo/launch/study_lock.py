"""One call at a time runs a study in a folder, however Snakemake was called (`make mini`, by hand).

Snakemake's own lock outlives a call that was killed, which is why `make` does without. This one ends with its process.
"""

import fcntl
import sys
from functools import wraps
from pathlib import Path
from typing import IO, Any

FOLDER = Path(".snakemake")
CHANGES = ("execute", "delete_output", "cleanup_metadata")
"""The methods of Snakemake's workflow that run jobs or change what is there; all others only look at it."""
_held: dict[Path, IO[str]] = {}


def take_turns(workflow: Any, study: str) -> None:
    """Hold the study once this call of Snakemake is about to run or change something, before it looks at what is there.

    Calls that only look (`--lint`, `--summary`, `--dag` ...) wait for nobody.

    Args:
        workflow: Snakemake's, as Snakefiles see it.
        study: its name.
    """

    def in_turn(method: Any) -> Any:
        @wraps(method)
        def run(*args: Any, **options: Any) -> Any:
            hold(study)
            return method(*args, **options)

        return run

    for name in CHANGES:
        setattr(workflow, name, in_turn(getattr(workflow, name)))


def hold(study: str) -> None:
    """Wait until no other call runs the study in this folder; then keep others waiting until this process has ended.

    To be called before what is there is looked at: another call may be making or removing it.
    """
    path = FOLDER.resolve() / f"{study}.lock"
    if path in _held:
        return
    path.parent.mkdir(exist_ok=True)
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"waiting for another call that runs study {study} in this folder ({path})", file=sys.stderr, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:  # a file system without locks
        print(f"warning: {path} cannot be locked: {error.strerror}", file=sys.stderr, flush=True)
    _held[path] = file
