"""Checks of what the trainings need: data for their batches, memory, disk."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.commands.doctor.machine import count_cores, device_memory
from mcgrpo.commands.forecast import space
from mcgrpo.commands.forecast.__main__ import add, forecasts, gigabytes
from mcgrpo.commands.forecast.batches import Batches, batches
from mcgrpo.commands.forecast.memory import GIB, memory
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.launch.devices import count
from mcgrpo.records import Run
from mcgrpo.study.fit import job_gpus
from mcgrpo.study.plan import Config, runs

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
    for (setting, arithmetic), names in variants.items():
        finding = f"{setting} ({', '.join(sorted(names))}): {arithmetic}"
        if arithmetic.steps == 0:
            yield Check("error", "batches", f"{finding}: more than the data set has", "smaller batches, or more data")
        else:
            steps = "unknown number of" if arithmetic.steps is None else f"{arithmetic.steps:,}"
            yield Check("ok", "batches", f"{finding}, {steps} steps")


def check_memory(config: Config, runs: Sequence[Run], sizes: Sizes) -> Iterator[Check]:
    """A line for each setting: the most that one of its trainings takes on a device, by estimate."""
    by_setting = defaultdict(list)
    for run in runs:
        by_setting[run.setting].append(
            (memory(run.training, sizes.models[run.model], batches_of(config, run, sizes)), run.model)
        )
    for setting, estimates in by_setting.items():
        most, model = max(estimates, key=lambda each: each[0].device)
        if not most.state:
            yield Check("warning", "memory", f"{setting}: unknown, as is the size of {model}")
            continue
        finding = f"{setting}: {most.state / GIB:.1f} GiB of weights, gradients and optimizer, activations "
        finding += f"about {most.activations / GIB:.1f} GiB" if most.activations else "unknown"
        finding += f", vLLM {most.vllm_share:.0%} of the device" if most.vllm_share else ""
        if config.get("gpus", 0):
            # Activations are too rough an estimate for an error
            needed, least, capacity = most.device, most._replace(activations=0).device, device_memory()
            what, remedy = "a GPU", "smaller batches, gradient_checkpointing, sharding or lora in the study"
        else:
            least, capacity = most.state + PROCESS_BYTES, psutil.virtual_memory().total
            needed, what = count_cores() * (least + most.activations), f"{count_cores()} trainings at a time with torch"
            remedy = "fewer jobs at a time (--cores)"
        here = "unknown" if capacity is None else f"{capacity / GIB:.0f} GiB"
        finding += f"; needed for {what}: about {needed / GIB:.0f} GiB, here: {here}"
        if capacity and needed <= TIGHT * capacity:
            yield Check("ok", "memory", finding)
        else:
            yield Check("error" if capacity and least > capacity else "warning", "memory", finding, remedy)


def check_disk(config: Config, sizes: Sizes) -> Check:
    """What the study leaves, and what its trainings need while they run, against the free space of this folder."""
    if not os.access(".", os.W_OK):
        return Check("error", "disk", f"{Path.cwd()} is not writable")
    left, free = forecasts(config, sizes).values(), shutil.disk_usage(".").free
    gpus = job_gpus(config, runs(config))
    at_once = max(count() // gpus, 1) if gpus else count_cores()
    scratch = [each.scratch for each in left]
    parts = {
        "to download": space.to_download(sizes),
        "of results": add(each.disk for each in left),
        f"while {at_once} train": None if None in scratch else at_once * max(scratch, default=0),
    }
    finding = ", ".join(f"{gigabytes(size)} GB {what}" for what, size in parts.items())
    finding = f"at most {finding}; {free / 1e9:,.0f} GB free"
    if sum(size or 0 for size in parts.values()) > free:
        return Check("error", "disk", finding, "free some space, or leave out keep_models")
    return Check("warning" if None in parts.values() else "ok", "disk", finding)
