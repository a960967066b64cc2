"""The user's own folders of sockets, locks and logs on this machine. Standard library only."""

import os
import stat
from contextlib import suppress
from pathlib import Path

TEMPORARY = "/tmp"


def session_folder() -> Path:
    """The private folder in XDG_RUNTIME_DIR, else in TMPDIR, else in /tmp.

    A Slurm job, a container or `su` may have the XDG_RUNTIME_DIR of another machine or user: one that is not there, or
    cannot be written to, is passed over.

    Raises:
        PermissionError: see `private_folder`.
    """
    bases = (os.environ.get("XDG_RUNTIME_DIR"), os.environ.get("TMPDIR"))
    usable = (base for base in bases if base and os.access(f"{base}/", os.W_OK | os.X_OK))
    return private_folder(next(usable, TEMPORARY))


def private_folder(base: str) -> Path:
    """`mcgrpo-UID` in a folder; made if it is not there.

    Raises:
        PermissionError: if it is a link or no folder, or if somebody else may own it or write there.
    """
    folder = Path(base, f"mcgrpo-{os.getuid()}")
    with suppress(FileExistsError):  # also for a link to nowhere
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a private directory of this user: remove it")
    return folder
