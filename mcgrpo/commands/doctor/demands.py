"""Checks of what the trainings need: data for their batches, memory, disk."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.commands.doctor.machine import count_cores, device_memory, usable_devices
from mcgrpo.commands.forecast.__main__ import add, gigabytes, jobs
from mcgrpo.commands.forecast.batches import Batches, batches
from mcgrpo.commands.forecast.memory import GIB, Memory, memory
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.records import Run
from mcgrpo.study.plan import Config

PROCESS_BYTES = 1.0 * GIB
"""Of a process on a CPU beside its model: importing torch and TRL takes 0.54 GiB, and training some more."""
TIGHT = 0.85
"""The share of a device above which so rough an estimate does not say whether the training fits."""


def batches_of(config: Config, run: Run, sizes: Sizes) -> Batches:
    """The batch arithmetic of a training of the study."""
    return batches(run, config.get("gpus", 0), sizes.rows[run.dataset].get("train"))


def check_batches(config: Config, runs: Sequence[Run], sizes: Sizes) -> Iterator[Check]:
    """A line for each setting and batch arithmetic, with the variants that have it."""
    variants = defaultdict(set)
    for run in runs:
        variants[run.setting, batches_of(config, run, sizes)].add(run.variant)
    for (setting, found), names in variants.items():
        finding = f"{setting} ({', '.join(sorted(names))}): {found}"
        if found.steps == 0:
            yield Check("error", "batches", f"{finding}: more than the data set has", "smaller batches, or more data")
        else:
            steps = "unknown number of" if found.steps is None else f"{found.steps:,}"
            yield Check("ok", "batches", f"{finding}, {steps} steps")


def check_memory(config: Config, runs: Sequence[Run], sizes: Sizes) -> Iterator[Check]:
    """A line for each setting: the most that one of its trainings takes on a device, by estimate."""
    by_setting = defaultdict(list)
    for run in runs:
        by_setting[run.setting].append(
            (memory(run, sizes.models[run.model], batches_of(config, run, sizes)), run.model)
        )
    for setting, found in by_setting.items():
        most, model = max(found, key=lambda each: each[0].device)
        if not most.state:
            yield Check("warning", "memory", f"{setting}: unknown, as is the size of {model}")
            continue
        finding = f"{setting}: {most.state / GIB:.1f} GiB of weights, gradients and optimizer, activations "
        finding += f"about {most.activations / GIB:.1f} GiB" if most.activations else "unknown"
        finding += f", vLLM {most.vllm_share:.0%} of the device" if most.vllm_share else ""
        yield _check_device(finding, most) if config.get("gpus", 0) else _check_process(finding, most)


def _check_device(finding: str, found: Memory) -> Check:
    finding, capacity = f"{finding}; needs a GPU of about {found.device / GIB:.0f} GiB", device_memory()
    if capacity is None:
        return Check("warning", "memory", f"{finding}, of unknown size here")
    status = "warning" if found.device > TIGHT * capacity else "ok"
    if found._replace(activations=0).device > capacity:  # activations are too rough an estimate for an error
        status = "error"
    remedy = "" if status == "ok" else "smaller batches, gradient_checkpointing, sharding or lora in the study"
    return Check(status, "memory", f"{finding}, has {capacity / GIB:.0f} GiB", remedy)


def _check_process(finding: str, found: Memory) -> Check:
    job, here = found.state + found.activations + PROCESS_BYTES, psutil.virtual_memory().total
    finding = f"{finding}; with torch about {job / GIB:.1f} GiB a job, {here / GIB:.0f} GiB here"
    if found.state + PROCESS_BYTES > here:
        return Check("error", "memory", finding)
    if count_cores() * job > here:
        return Check("warning", "memory", finding, f"at most {max(int(here // job), 1)} jobs at a time (--cores)")
    return Check("ok", "memory", f"{finding} for {count_cores()} at a time")


def check_disk(config: Config, sizes: Sizes) -> Check:
    """What the study leaves, and what its trainings need while they run, against the free space of this folder."""
    if not os.access(".", os.W_OK):
        return Check("error", "disk", f"{Path.cwd()} is not writable")
    gpus, left, free = config.get("gpus", 0), jobs(config, sizes).values(), shutil.disk_usage(".").free
    at_once = max(len(usable_devices()) // gpus, 1) if gpus else count_cores()
    scratch = [job.scratch for job in left]
    parts = {
        "to download": add(answer.download for answer in sizes.hub.values()),
        "of results": add(job.disk for job in left),
        f"while {at_once} train": None if None in scratch else at_once * max(scratch, default=0),
    }
    finding = ", ".join(f"{gigabytes(size)} GB {what}" for what, size in parts.items())
    finding = f"at most {finding}; {free / 1e9:,.0f} GB free"
    if sum(size or 0 for size in parts.values()) > free:
        return Check("error", "disk", finding, "free some space, or leave out keep_models")
    return Check("warning" if None in parts.values() else "ok", "disk", finding)
