"""Checks of the machine: GPUs, cores, programs, the tracking store."""

import os
import shutil
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import psutil

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.launch.gpus import gpus
from mcgrpo.study.fit import job_gpus
from mcgrpo.study.plan import Config, runs
from mcgrpo.tracking import store_of

GIB = 2**30
TIMEOUT = 3.0
"""Seconds that a tracking server has to answer."""
PROGRAMS = {
    "git": "runs record no commit",
    "latexmk": "tables and figures are made, but no reproduction.pdf (Debian: texlive-latex-extra lmodern latexmk)",
}


def check_machine(config: Config) -> Iterator[Check]:
    """All checks of this module."""
    yield check_gpus(config.get("nodes", 1), job_gpus(config, runs(config)))
    memory, cores = psutil.virtual_memory(), len(psutil.Process().cpu_affinity())
    yield Check("ok", "CPU", f"{cores} cores, {memory.total / GIB:.0f} GiB of memory")
    for name, without in PROGRAMS.items():
        path = shutil.which(name)
        yield Check("ok" if path else "warning", name, path or f"not found: {without}")
    yield check_tracking(config)
    writable, free = os.access(".", os.W_OK), shutil.disk_usage(".").free
    yield Check("ok" if writable else "error", "disk", f"{free / 1e9:,.0f} GB free" if writable else "not writable")


def check_gpus(nodes: int, wanted: int) -> Check:
    """At least as many GPUs as one training takes here, with those of its vLLM server."""
    here = len(gpus())
    if not wanted:
        return Check("ok", "GPUs", f"{here}; none is needed, as the study trains on the CPU (gpus: 0)")
    if here < wanted:
        remedy = "run doctor on the machine (or in the job) that has them, or change `gpus` in the study"
        return Check("error", "GPUs", f"{here}; one training takes {wanted}", remedy)
    if nodes > 1:
        return Check("ok", "GPUs", f"{here}; one training takes {wanted} on each of {nodes} machines")
    at_once = here // wanted
    return Check("ok", "GPUs", f"{here}; one training takes {wanted}: {at_once} at a time with --resources gpu={here}")


def check_tracking(config: Config) -> Check:
    """The MLflow store, asked if it is a server; training goes on without it."""
    store = store_of(config)
    if not store.startswith(("http:", "https:")):
        return Check("ok", "tracking", store or "none, as the study or MLFLOW_TRACKING_URI says")
    try:
        with urllib.request.urlopen(f"{store.rstrip('/')}/health", timeout=TIMEOUT):
            return Check("ok", "tracking", f"{store} answers")
    except (OSError, ValueError) as error:
        finding = f"answers with {error.code}" if isinstance(error, HTTPError) else f"does not answer ({error})"
        remedy = "training goes on without it; `mcgrpo track` adds the runs later"
        return Check("warning", "tracking", f"{store} {finding}", remedy)
