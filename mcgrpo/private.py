"""The user's own folder of sockets, locks and logs on this machine. Standard library only."""

import os
import stat
from pathlib import Path


def private_folder() -> Path:
    """`mcgrpo-UID` in XDG_RUNTIME_DIR, else in TMPDIR, else in /tmp; made if it is not there.

    Raises:
        PermissionError: if it is a link or no folder, or if somebody else may own it or write there.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"
    folder = Path(base, f"mcgrpo-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a private directory of this user: remove it, or set TMPDIR")
    return folder
