"""Processes that must not outlive the one that started them. Standard library only, Linux where it matters."""

import ctypes
import os
import signal
import sys
from pathlib import Path

HOLDER = "MCGRPO_HOLDER"
"""Set by `mcgrpo.launch.gpus` for the job that it starts: the process that holds the job's devices."""

PR_SET_PDEATHSIG = 1


def ancestors() -> list[int]:
    """Ids of this process's parent, of that one's parent and so on, as far as /proc shows them.

    `psutil.Process.parents` raises an error where /proc hides the processes of other users (hidepid=1).
    """
    found = [os.getppid()]
    while found[-1] > 1:
        try:
            status = Path(f"/proc/{found[-1]}/stat").read_text()
        except OSError:
            break
        found.append(int(status.rpartition(")")[2].split()[1]))
    return found


def is_first() -> bool:
    """Whether this is the only process of its job, or the first one that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def die_with_parent() -> None:
    """Have this process killed as soon as its parent has died, however that dies (prctl(2); nothing but on Linux).

    For the workers of torchrun: it starts them without the locks on their devices, so these are free once it is
    dead. To be called by a child whose parent started it from its main thread, as torchrun does.

    Raises:
        SystemExit: if the process that held the devices has died already.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    holder = os.environ.get(HOLDER)
    # Whoever died before prctl(2) sent no signal, but left its children to another parent.
    if os.getppid() != parent or (holder and int(holder) not in ancestors()):
        sys.exit(f"process {holder or parent}, which started this one, has died")
