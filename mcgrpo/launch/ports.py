"""Ports that no other job of this machine takes.

Libraries look for a free port and take it seconds later: jobs that start at once find the same one (TRL tries 29500
first). A job locks its port, as its GPUs (`mcgrpo.launch.gpus`), until it ends.
"""

import random
import socket
from contextlib import suppress

from filelock import FileLock, Timeout

from mcgrpo.launch.gpus import lock_of

PORTS = range(20000, 29000)
"""Below those that Linux gives to clients (net.ipv4.ip_local_port_range: from 32768), so that none of them has it."""


def take() -> tuple[int, FileLock]:
    """A port on which nothing listens, and its lock, which the caller has to keep.

    Tried in random order: jobs whose /tmp is their own, as on some clusters, do not see each other's locks.

    Raises:
        ValueError: if there is none.
    """
    for port in random.Random().sample(PORTS, len(PORTS)):
        lock = lock_of(f"port {port}")
        if lock.is_locked:  # by this process, which could lock it again
            continue
        with suppress(Timeout):
            lock.acquire(timeout=0)
            if _is_free(port):
                return port, lock
            lock.release()
    raise ValueError(f"all ports from {PORTS[0]} to {PORTS[-1]} are taken")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True
