"""What a training uses of its machine, under the names of MLflow's system metrics, into a file of rows.

By psutil, and pynvml for GPUs, as in MLflow's own monitor; that one speaks to a store, and would have a training import
MLflow. Where psutil is not installed, there is no file.
"""

import importlib
import importlib.util
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FIRST_SECONDS, INTERVAL_SECONDS = 1.0, 10.0
LAST_SECONDS = 5.0


@contextmanager
def sampled(path: Path) -> Iterator[None]:
    """Append a row to a file every few seconds while the block runs: `step` (a count), `time`, `system/...`."""
    if importlib.util.find_spec("psutil") is None:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_sample, args=(path, ended), name="system metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LAST_SECONDS)  # its row must not come into a folder that is moved by then


def _sample(path: Path, ended: threading.Event) -> None:
    step = len(path.read_text().splitlines()) if path.is_file() else 0
    _machine()  # psutil counts from the call before
    wait = FIRST_SECONDS
    while not ended.wait(wait):
        row = {"step": step, "time": time.time()}
        row |= {f"system/{name}": round(value, 1) for name, value in {**_machine(), **_gpus()}.items()}
        try:
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
        except OSError:  # no disk, or no folder any more
            return
        step, wait = step + 1, INTERVAL_SECONDS


def _machine() -> dict[str, float]:
    import psutil

    memory, disk, network = psutil.virtual_memory(), psutil.disk_usage("."), psutil.net_io_counters()
    used = {
        "cpu_utilization_percentage": psutil.cpu_percent(),
        "system_memory_usage_megabytes": memory.used / 1e6,
        "system_memory_usage_percentage": memory.used / memory.total * 100,
        "disk_usage_percentage": disk.percent,
        "disk_usage_megabytes": disk.used / 1e6,
        "disk_available_megabytes": disk.free / 1e6,
    }
    if network:
        used["network_receive_megabytes"] = network.bytes_recv / 1e6
        used["network_transmit_megabytes"] = network.bytes_sent / 1e6
    return used


def _gpus() -> dict[str, float]:
    """Of the GPUs that the process may use, by their numbers on the machine."""
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.isdigit()]
    if not visible or importlib.util.find_spec("pynvml") is None:
        return {}
    pynvml, used = importlib.import_module("pynvml"), {}
    try:
        pynvml.nvmlInit()
        for number in visible:
            handle = pynvml.nvmlDeviceGetHandleByIndex(int(number))
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
            used[f"gpu_{number}_utilization_percentage"] = rates.gpu
            used[f"gpu_{number}_memory_usage_megabytes"] = memory.used / 1e6
            used[f"gpu_{number}_memory_usage_percentage"] = memory.used / memory.total * 100
            used[f"gpu_{number}_power_usage_watts"] = pynvml.nvmlDeviceGetPowerUsage(handle) / 1000
    except pynvml.NVMLError:
        return used
    return used
