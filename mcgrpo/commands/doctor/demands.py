"""Checks of what the trainings ask of the machine: batches, memory, disk."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import psutil

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.commands.doctor.machine import cores, device_memory, devices
from mcgrpo.commands.forecast import space
from mcgrpo.commands.forecast.batches import Batches, batches
from mcgrpo.commands.forecast.memory import GIB, Memory, memory
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.commands.forecast.table import rows, total
from mcgrpo.records import Run
from mcgrpo.study.fit import check_sharding
from mcgrpo.study.plan import Config

PROCESS_BYTES = 1.0 * GIB
"""Of a process on a CPU beside its model: importing torch and TRL takes 0.54 GiB, and training some more."""
TIGHT = 0.85
"""The share of a device above which an estimate this rough does not say whether it fits."""


def arithmetic_of(config: Config, run: Run, sizes: Sizes) -> Batches:
    """The batch arithmetic of one run of the study."""
    return batches(run, config.get("gpus", 0), sizes.rows[run.dataset].get("train"))


def check_batches(config: Config, runs: Iterable[Run], sizes: Sizes) -> Iterator[Check]:
    """A line for each way in which trainings go through their prompts, with the variants that go so."""
    groups: dict[tuple[str, Batches], set[str]] = defaultdict(set)
    for run in runs:
        found = arithmetic_of(config, run, sizes)
        groups[run.setting, _undrawn(found)].add(run.variant)
    for (setting, found), variants in groups.items():
        yield _check_batch(f"{setting} ({', '.join(sorted(variants))})", found)


def _undrawn(found: Batches) -> Batches:
    """Methods of a G differ in the rollouts they draw alone."""
    return Batches(**{**vars(found), "drawn": found.group_rows})


def _check_batch(name: str, found: Batches) -> Check:
    if found.steps is None:
        return Check("ok", "batches", f"{name}: {found.arithmetic}; steps unknown until the data set is there")
    if not found.steps:
        remedy = "take smaller batches, or more data"
        return Check("lacking", "batches", f"{name}: {found.arithmetic}, more than the data set has prompts", remedy)
    return Check("ok", "batches", f"{name}: {found.arithmetic}, {found.steps:,} steps")


def check_memory(config: Config, runs: Iterable[Run], sizes: Sizes) -> Iterator[Check]:
    """A line for each setting: the most that one of its trainings takes on a device, by estimate."""
    by_setting: dict[str, list[tuple[Memory, Run]]] = defaultdict(list)
    for run in runs:
        found = memory(run, sizes.models[run.model], arithmetic_of(config, run, sizes))
        by_setting[run.setting].append((found, run))
    capacity = device_memory() if config.get("gpus", 0) else None
    for setting, found in by_setting.items():
        most, run = max(found, key=lambda each: each[0].smallest_device)
        parameters = sizes.models[run.model].parameters
        if not parameters:
            yield Check("warning", "memory", f"{setting}: unknown, as is the size of {run.model}")
        elif config.get("gpus", 0):
            yield _check_device(f"{setting}, {run.model} of {parameters / 1e9:.2f}B: {_spelt(most)}", most, capacity)
        else:
            yield _check_process(f"{setting}: {_spelt(most)}", most)


def _spelt(found: Memory) -> str:
    activations = f"{found.activations / GIB:.1f}" if found.activations else "unknown"
    parts = f"{found.state / GIB:.1f} GiB of weights, gradients and optimizer, activations about {activations} GiB"
    return parts + (f", {found.vllm_share:.0%} of the device for vLLM" if found.vllm_share else "")


def _check_device(finding: str, found: Memory, capacity: int | None) -> Check:
    finding = f"{finding}: needs a GPU of about {found.smallest_device / GIB:.0f} GiB"
    if capacity is None:
        return Check("warning", "memory", f"{finding}; none here to compare with")
    finding = f"{finding}; has {capacity / GIB:.0f} GiB"
    remedy = "smaller batches, gradient_checkpointing, sharding or lora in the study"
    if found.smallest_for_state > capacity:
        return Check("lacking", "memory", finding, remedy)
    if found.smallest_device > TIGHT * capacity:
        return Check("warning", "memory", finding, remedy)
    return Check("ok", "memory", finding)


def _check_process(finding: str, found: Memory) -> Check:
    one, whole = found.state + found.activations + PROCESS_BYTES, psutil.virtual_memory().total
    finding = f"{finding}; with torch about {one / GIB:.1f} GiB a job, {whole / GIB:.0f} GiB here"
    if found.state + PROCESS_BYTES > whole:
        return Check("lacking", "memory", finding)
    if cores() * one > whole:
        return Check("warning", "memory", finding, f"at most {max(int(whole // one), 1)} jobs at a time (--cores)")
    return Check("ok", "memory", f"{finding} for {cores()} at a time")


def check_sharded(config: Config, runs: Iterable[Run]) -> Iterator[Check]:
    """Sharding that one process could not do."""
    for sharding in sorted({run.training.get("sharding", "none") for run in runs}):
        try:
            check_sharding(sharding, config.get("gpus", 0))
        except ValueError as error:
            yield Check("lacking", "sharding", str(error), "change gpus or sharding in the study")


def check_disk(config: Config, runs: Sequence[Run], sizes: Sizes) -> Check:
    """What the study leaves, and what its trainings need while they last, against what is free where it is run."""
    whole = total(rows(config, sizes))
    if not os.access(".", os.W_OK):
        return Check("lacking", "disk", f"{Path.cwd()} cannot be written")
    free = shutil.disk_usage(".").free
    at_once = max(len(devices()) // config["gpus"], 1) if config.get("gpus", 0) else cores()
    passing = [space.while_training(run, sizes) for run in runs if run.name in {job.name for job in whole.to_train}]
    parts = {
        "to download": space.to_download(sizes),
        "that stay": whole.disk,
        f"while {at_once} train": None if None in passing else at_once * max(passing, default=0),
    }
    finding = ", ".join(f"{'unknown' if n is None else f'{n / 1e9:,.1f}'} GB {what}" for what, n in parts.items())
    finding = f"{finding} (at most); {free / 1e9:,.0f} GB free"
    if sum(n or 0 for n in parts.values()) > free:
        return Check("lacking", "disk", finding, "make room, run elsewhere, or leave keep_models out")
    return Check("warning" if None in parts.values() else "ok", "disk", finding)
