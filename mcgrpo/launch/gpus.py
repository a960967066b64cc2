"""Which GPUs a job computes on: Snakemake counts them, but does not number them.

A job locks its GPUs, a file each, until it ends. Locks are named by UUID: in a scheduler's cgroup every job's GPU is
number 0.
"""

import hashlib
import itertools
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

UUID = re.compile("GPU-|MIG-")
PRETENDED = "MCGRPO_DEVICES"
"""Environment variable of tests: GPUs (by comma) in place of this machine's; jobs on them run on the CPU."""
PRETENDED_GIB = "MCGRPO_DEVICE_GIB"
"""Environment variable of tests: the memory of each of those GPUs, in GiB; without it, it is not known."""
POLL_SECONDS = 0.5


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
    except pynvml.NVMLError as error:
        if error.value not in (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED):
            print(f"mcgrpo.launch: GPUs are not seen: {error}", file=sys.stderr, flush=True)
        return {}
    found = {}
    for number in range(pynvml.nvmlDeviceGetCount()):
        with suppress(pynvml.NVMLError):  # a GPU that is lost keeps its number
            found[str(number)] = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(number))
    return found


def memory_of_gpus() -> list[int]:
    """The bytes of each GPU of `gpus` of which NVML tells them: not of one that shares the machine's memory."""
    if PRETENDED in os.environ:
        size = os.environ.get(PRETENDED_GIB)
        return [round(float(size) * 2**30)] * len(gpus()) if size else []
    if not (uuids := gpus().values()):
        return []
    import pynvml

    sizes = []
    for uuid in uuids:
        with suppress(pynvml.NVMLError):  # not supported; or CUDA_VISIBLE_DEVICES has the beginning of a UUID
            sizes.append(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(uuid)).total)
    return sizes


def check(wanted: int) -> None:
    """Check that this machine has as many GPUs as a job needs.

    Raises:
        ValueError: with both numbers.
    """
    if wanted and wanted > (here := len(gpus())):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        where = "this machine has" if visible is None else f"CUDA_VISIBLE_DEVICES={visible} leaves"
        raise ValueError(f"{_count(wanted)} wanted, {where} {here}")


def check_given(wanted: int, given: int) -> None:
    """Check that Snakemake may use as many GPUs (`--resources gpu=N`) as a job needs.

    Raises:
        ValueError: with both numbers.
    """
    if given < wanted:
        raise ValueError(f"a job of this study needs {_count(wanted)}, and --resources gpu={given} allows {given}")


def _count(number: int) -> str:
    return f"{number} GPU" if number == 1 else f"{number} GPUs"


def take(wanted: int) -> list[FileLock]:
    """Wait for `wanted` GPUs, lock them until this process ends, and set CUDA_VISIBLE_DEVICES to them.

    Returns:
        Their locks, which the caller has to keep.

    Raises:
        ValueError: see `check`.
    """
    check(wanted)
    start, told = time.monotonic(), False
    while not (taken := _free(wanted)):
        if not told:
            print(f"mcgrpo.launch: waits for {_count(wanted)}", file=sys.stderr, flush=True)
        told = True
        time.sleep(POLL_SECONDS)
        check(wanted)  # one may be lost
    os.environ |= {"CUDA_VISIBLE_DEVICES": ",".join(taken), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # NVML's order
    after = f"after {time.monotonic() - start:.1f} s"
    print(f"mcgrpo.launch: takes {', '.join(taken)} {after}", file=sys.stderr, flush=True)
    return list(taken.values())


def _free(wanted: int) -> dict[str, FileLock]:
    """Lock `wanted` GPUs (by their entries), or none."""
    taken: dict[str, FileLock] = {}
    for entry, uuid in gpus().items():
        with suppress(Timeout):
            taken[entry] = lock_of(f"GPU {uuid}").acquire(timeout=0).lock
        if len(taken) == wanted:
            return taken
    for lock in taken.values():
        lock.release()
    return {}


def lock_of(what: str) -> FileLock:
    """A lock among the processes of one user on this machine, which ends with the process that holds it.

    Its file is in the folder `MCGRPO_LOCKS`, by default one in /tmp: not in TMPDIR, which may differ between jobs.

    Raises:
        PermissionError: if another user has made that folder.
    """
    folder = Path(os.environ.get("MCGRPO_LOCKS") or f"/tmp/mcgrpo-{os.getuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return FileLock(folder / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.lock", is_singleton=True)
