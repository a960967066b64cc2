"""Locks among the processes of one user on this machine, which leave no file behind."""

import hashlib
from pathlib import Path

from filelock import FileLock

from mcgrpo.launch import private


class TransientLock(FileLock):
    """A `FileLock` whose file goes with it: whoever waits for it sees that, and makes a new one."""

    def _release(self) -> None:
        Path(self.lock_file).unlink(missing_ok=True)
        super()._release()


def lock_of(what: str) -> TransientLock:
    """The lock of whatever a text names: the same one for all of a user's processes, whatever their environment.

    Raises:
        PermissionError: see `mcgrpo.launch.private.private_folder`.
    """
    name = hashlib.sha256(what.encode()).hexdigest()[:16]
    return TransientLock(private.private_folder(private.TEMPORARY) / f"{name}.lock", is_singleton=True)
