"""One call at a time runs a study in a folder, however Snakemake was called (`make mini`, by hand).

Snakemake's own lock outlives a call that was killed, which is why `make` does without. This one ends with its process.
"""

import fcntl
import sys
from pathlib import Path
from typing import IO

FOLDER = Path(".snakemake")
_held: dict[Path, IO[str]] = {}


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
