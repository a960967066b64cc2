"""Locks among the processes of one user on this machine."""

import hashlib
import os
from pathlib import Path

from filelock import FileLock


def lock_of(what: str) -> FileLock:
    """The lock of whatever a text names; it is released when the process that holds it has ended, however that ends.

    Its file is in the folder `MCGRPO_LOCKS`, by default one in /tmp: not in TMPDIR, which may differ between jobs.

    Raises:
        PermissionError: if another user has made that folder.
    """
    folder = Path(os.environ.get("MCGRPO_LOCKS") or f"/tmp/mcgrpo-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return FileLock(folder / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.lock", is_singleton=True)
