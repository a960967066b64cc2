"""Which GPUs this machine has, and which of them this process may use.

They are those of `nvidia-smi -L`, or of `MCGRPO_DEVICES` (names, comma-separated: pretend ones, or those of a machine
without nvidia-smi), less what a `CUDA_VISIBLE_DEVICES` that is set leaves out. Standard library only.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

LISTED = re.compile(
    r"GPU (?P<index>\d+): (?P<name>.+) \(UUID: (?P<uuid>\S+)\)|\s+MIG (?P<mig>.+?): \(UUID: (?P<id>\S+)\)"
)
NOTHING = ("", "-1", "NoDevFiles")
"""What CUDA_VISIBLE_DEVICES holds where nothing is visible, or nothing further; the last one is Slurm's."""

PRETENDED = "MCGRPO_DEVICES"
"""The variable that names devices in place of nvidia-smi; with it, and without CUDA, a job of GPUs runs on the CPU."""


class DeviceError(RuntimeError):
    """There are not the devices that are wanted; the message says which there are, or why none could be listed."""


class Device(NamedTuple):
    """A GPU, or a part of one (MIG).

    `visible` is what CUDA_VISIBLE_DEVICES calls it: what stood there already, else a GPU's index in nvidia-smi's (PCI)
    order, a part's UUID. An index is preferred since not every library reads UUIDs.
    """

    uuid: str
    visible: str
    name: str


def devices() -> list[Device]:
    """The devices that this process may use, in CUDA's order; whether they are free is not looked at.

    Raises:
        DeviceError: if nvidia-smi fails, or CUDA_VISIBLE_DEVICES names no device of this machine.
    """
    found, visible = _machine(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else list(_visible(found, visible))


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
    """The devices in the output of `nvidia-smi -L`; a GPU that is divided (MIG) counts as its parts."""
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
    """The devices that CUDA_VISIBLE_DEVICES names by index, UUID or the UUID's beginning."""
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
