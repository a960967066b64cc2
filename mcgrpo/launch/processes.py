"""The processes of one job."""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def is_first() -> bool:
    """Whether this is the only process of its job, or the first one that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def die_with_parent() -> None:
    """Have this process killed as soon as its parent has died, however that dies (prctl(2); nothing but on Linux).

    To be called by a child whose parent started it from its main thread, as torchrun does.
    """
    import ctypes  # most jobs last seconds

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
