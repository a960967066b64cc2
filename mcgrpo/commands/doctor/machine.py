"""Checks of the machine: GPUs, cores, programs, the tracking store."""

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import psutil

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.launch import gpus
from mcgrpo.study.plan import Config
from mcgrpo.tracking import DEFAULT_STORE

GIB = 2**30
TIMEOUT = 3.0
"""Seconds that a tracking server has for an answer."""
PROGRAMS = {
    "git": "runs record no commit",
    "latexmk": "tables and figures are made, but no reproduction.pdf (Debian: texlive-latex-extra latexmk)",
}


def devices() -> list[gpus.Device]:
    """The GPUs that a job of this shell could use; none where they cannot be listed."""
    try:
        return gpus.devices()
    except gpus.DeviceError:
        return []


def check_gpus(config: Config) -> Check:
    """As many devices as one training takes."""
    wanted = config.get("gpus", 0)
    try:
        found = gpus.devices()
    except gpus.DeviceError as error:
        return Check("lacking" if wanted else "ok", "GPUs", " ".join(str(error).split()))
    names = f"{len(found)} ({', '.join(sorted({device.name for device in found}))})" if found else "none"
    if not wanted:
        return Check("ok", "GPUs", f"{names} here, none needed: gpus is 0, the study trains on the CPU")
    if len(found) < wanted:
        remedy = "ask on the machine (or in the job) that has them, or change the study's gpus (and so rows and steps)"
        return Check("lacking", "GPUs", f"{names} here, one training takes {wanted}", remedy)
    together = len(found) // wanted
    use = f"--resources gpu={together * wanted}"
    return Check("ok", "GPUs", f"{names} here, one training takes {wanted}: {together} at a time with {use}")


def device_memory() -> int | None:
    """Bytes of the smallest device here; None where nvidia-smi does not say, or only of a whole that is divided."""
    query = ["nvidia-smi", "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.split(",") for line in done.stdout.splitlines() if done.returncode == 0]
    by_uuid = {uuid.strip(): int(mib) * 2**20 for uuid, mib in lines if mib.strip().isdigit()}
    found = [by_uuid.get(device.uuid) for device in devices()]
    return None if not found or None in found else min(found)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1


def check_cpu(config: Config) -> Check:
    """Cores and memory."""
    memory = psutil.virtual_memory()
    finding = f"{cores()} cores, {memory.total / GIB:.0f} GiB of memory, {memory.available / GIB:.0f} GiB available"
    wanted = max(config.get("gpus", 0), 1)
    if cores() < wanted:
        return Check("warning", "CPU", f"{finding}; a training starts {wanted} processes")
    return Check("ok", "CPU", finding)


def check_programs() -> Iterator[Check]:
    """Programs that are of use, none of which a study needs."""
    for name, without in PROGRAMS.items():
        if path := shutil.which(name):
            yield Check("ok", name, path)
        else:
            yield Check("warning", name, f"not found: {without}")


def check_tracking(config: Config) -> Check:
    """The store that jobs will log to; a training goes on without it."""
    store = os.environ.get("MLFLOW_TRACKING_URI") or config.get("tracking_uri", DEFAULT_STORE)
    if not store:
        return Check("ok", "tracking", "none, as the study says")
    parts = urlsplit(store)
    if parts.scheme in ("http", "https"):
        return _check_server(store)
    if parts.scheme in ("", "file") or parts.scheme.startswith("sqlite"):
        return _check_file(store, Path(store.removeprefix("sqlite:///") if "sqlite" in parts.scheme else parts.path))
    return Check("ok", "tracking", f"{store}: not asked")


def _check_server(store: str) -> Check:
    remedy = "training goes on without it; `mcgrpo track` brings it up to date later"
    try:
        with urllib.request.urlopen(f"{store.rstrip('/')}/health", timeout=TIMEOUT):
            return Check("ok", "tracking", f"{store} answers")
    except HTTPError as error:
        return Check("warning", "tracking", f"{store} answers with {error.code}", remedy)
    except (OSError, ValueError) as error:
        return Check("warning", "tracking", f"{store} does not answer ({error})", remedy)


def _check_file(store: str, path: Path) -> Check:
    place = path.absolute()
    while not place.exists():
        place = place.parent
    if os.access(place, os.W_OK):
        return Check("ok", "tracking", store)
    return Check("warning", "tracking", f"{store}: {place} cannot be written", "training goes on without it")
