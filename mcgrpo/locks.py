"""Locks among the processes of one user on this machine, which leave no file behind."""

import hashlib
from pathlib import Path

from filelock import FileLock

from mcgrpo.private import private_folder


class TransientLock(FileLock):
    """A `FileLock` whose file goes with it: whoever waits for it sees that, and makes a new one."""

    def _release(self) -> None:
        Path(self.lock_file).unlink(missing_ok=True)
        super()._release()


def lock_of(what: str) -> TransientLock:
    """The lock of whatever a text names.

    Raises:
        PermissionError: see `mcgrpo.private.private_folder`.
    """
    return TransientLock(private_folder() / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.lock", is_singleton=True)
