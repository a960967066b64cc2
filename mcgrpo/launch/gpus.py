"""Which GPUs a job computes on: Snakemake counts them, but does not number them.

A job locks its GPUs, a file each, until it ends. Locks are named by UUID: in a scheduler's cgroup every job's GPU is
number 0.
"""

import itertools
import os
import re
import sys
import time
from contextlib import suppress

from filelock import BaseFileLock, Timeout

from mcgrpo.launch.locks import lock_of

UUID = re.compile("GPU-|MIG-")
PRETENDED = "MCGRPO_DEVICES"
"""Environment variable of tests: GPUs (by comma) in place of this machine's; jobs on them run on the CPU."""
POLL_SECONDS = 0.5


class GPUError(RuntimeError):
    """Fewer GPUs than a job needs; the message has both numbers."""


def gpus() -> dict[str, str]:
    """The GPUs that this process may use: entry for CUDA_VISIBLE_DEVICES -> UUID."""
    machine, visible = _machine(), os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return machine
    # CUDA reads no further than the first entry that is no GPU, such as -1, or SLURM's NoDevFiles.
    entries = itertools.takewhile(
        lambda entry: entry in machine or UUID.match(entry), map(str.strip, visible.split(","))
    )
    return {entry: machine.get(entry, entry) for entry in entries}


def _machine() -> dict[str, str]:
    """Number -> UUID of this machine's GPUs, in NVML's (PCI) order."""
    if (names := os.environ.get(PRETENDED)) is not None:
        return {name: name for name in names.split(",") if name}
    import pynvml  # not needed for a job without GPUs

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # no driver
        return {}
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    found = {str(number): pynvml.nvmlDeviceGetUUID(handle) for number, handle in enumerate(handles)}
    pynvml.nvmlShutdown()
    return found


def check(wanted: int) -> None:
    """Check that this machine has as many GPUs as a job needs.

    Raises:
        GPUError: with both numbers.
    """
    if wanted and wanted > (here := len(gpus())):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        where = "this machine has" if visible is None else f"CUDA_VISIBLE_DEVICES={visible} leaves"
        raise GPUError(f"{_gpus(wanted)} wanted, {where} {here}")


def check_given(wanted: int, given: int) -> None:
    """Check that Snakemake may use as many GPUs (`--resources gpu=N`) as a job needs.

    Raises:
        GPUError: with both numbers.
    """
    if given < wanted:
        raise GPUError(f"a job of this study needs {_gpus(wanted)}, and --resources gpu={given} allows {given}")


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def take(wanted: int) -> list[BaseFileLock]:
    """Wait for `wanted` GPUs, lock them until this process ends, and set CUDA_VISIBLE_DEVICES to them.

    Returns:
        Their locks, which the caller has to keep.

    Raises:
        GPUError: see `check`.
    """
    check(wanted)
    start, told = time.monotonic(), False
    while len(taken := _free(wanted)) < wanted:
        if not told:
            _say(f"waits for {_gpus(wanted)}")
            told = True
        time.sleep(POLL_SECONDS)
    os.environ |= {"CUDA_VISIBLE_DEVICES": ",".join(taken), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # NVML's order
    _say(f"takes {', '.join(taken)} after {time.monotonic() - start:.1f} s")
    return list(taken.values())


def _free(wanted: int) -> dict[str, BaseFileLock]:
    """Lock `wanted` GPUs (by their entries), or none."""
    taken: dict[str, BaseFileLock] = {}
    for entry, uuid in gpus().items():
        if len(taken) < wanted:
            with suppress(Timeout):
                lock = lock_of(f"GPU {uuid}")
                lock.acquire(timeout=0)
                taken[entry] = lock
    if len(taken) < wanted:
        for lock in taken.values():
            lock.release()
        return {}
    return taken


def _say(text: str) -> None:
    print(f"mcgrpo.launch: {text}", file=sys.stderr, flush=True)
