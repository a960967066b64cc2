"""The GPUs that this process may use.

They are listed by `nvidia-smi -L`, or by `MCGRPO_DEVICES` (comma-separated names, for tests or machines without
nvidia-smi), and restricted by `CUDA_VISIBLE_DEVICES`. Standard library only.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

LISTED = re.compile(
    r"GPU (?P<index>\d+): (?P<name>.+) \(UUID: (?P<uuid>\S+)\)|\s+MIG (?P<mig>.+?): \(UUID: (?P<id>\S+)\)"
)
NOTHING = ("", "-1", "NoDevFiles")
"""Entries of CUDA_VISIBLE_DEVICES after which CUDA reads no further; the last one is Slurm's."""
PRETENDED = "MCGRPO_DEVICES"
"""Environment variable that lists devices in place of nvidia-smi; without CUDA, jobs on them run on the CPU."""


class DeviceError(RuntimeError):
    """Too few devices, or none that can be listed; the message says which there are."""


class Device(NamedTuple):
    """A GPU, or a MIG device.

    `visible` is its entry for CUDA_VISIBLE_DEVICES: the one that it has there already, else the GPU's index in
    nvidia-smi's (PCI) order, as not every library reads UUIDs, or the MIG device's UUID.
    """

    uuid: str
    visible: str
    name: str


def devices() -> list[Device]:
    """The devices that this process may use, in CUDA's order, whether they are free or not.

    Raises:
        DeviceError: if nvidia-smi fails, or CUDA_VISIBLE_DEVICES names no device of this machine.
    """
    found, visible = _machine(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else list(_visible(found, visible))


def count() -> int:
    """How many devices this process may use; 0 if they cannot be listed."""
    try:
        return len(devices())
    except DeviceError:
        return 0


def _machine() -> list[Device]:
    names = os.environ.get(PRETENDED)
    if names is None:
        return parse(_nvidia_smi())
    pretended = [name.strip() for name in names.split(",") if name.strip()]
    if len(set(pretended)) < len(pretended):
        raise DeviceError(f"MCGRPO_DEVICES={names} names a device twice")
    return [Device(name, name, "pretend device") for name in pretended]


def _nvidia_smi() -> str:
    import subprocess  # not needed for a job without GPUs

    try:
        done = subprocess.run(["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    if done.returncode:
        raise DeviceError(f"nvidia-smi -L failed ({done.returncode}): {(done.stdout + done.stderr).strip()}")
    return done.stdout


def parse(listing: str) -> list[Device]:
    """The devices in the output of `nvidia-smi -L`; a GPU with MIG devices is replaced by them."""
    found: list[Device] = []
    whole = None
    for match in map(LISTED.match, listing.splitlines()):
        if match and match["uuid"]:
            found.append(whole := Device(match["uuid"], match["index"], match["name"]))
        elif match and whole:
            if found[-1] == whole:
                found.pop()
            found.append(Device(match["id"], match["id"], f"{whole.name} MIG {match['mig']}"))
    return found


def _visible(found: list[Device], visible: str) -> Iterator[Device]:
    """The devices that CUDA_VISIBLE_DEVICES names, by index, UUID or prefix of a UUID."""
    seen = set()
    for entry in map(str.strip, visible.split(",")):
        if entry in NOTHING:  # CUDA reads no further
            return
        by_name = [each for each in found if entry in (each.visible, each.uuid)]
        by_start = [each for each in found if entry.startswith(("GPU-", "MIG-")) and each.uuid.startswith(entry)]
        if len(matches := by_name or by_start) != 1 or matches[0].uuid in seen:
            fault = "a device twice" if len(matches) == 1 else "several devices" if matches else "no device"
            raise DeviceError(f"CUDA_VISIBLE_DEVICES={visible}: {entry} names {fault} of this machine: {listed(found)}")
        seen.add(matches[0].uuid)
        yield matches[0]._replace(visible=entry)


def listed(found: list[Device]) -> str:
    """The devices in words, for messages."""
    return ", ".join(f"{each.visible} ({each.name}, {each.uuid})" for each in found) or "none"
