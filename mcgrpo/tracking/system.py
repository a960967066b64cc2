"""What a training uses of its machine, as rows of a file, under the names of MLflow's system metrics.

MLflow's own monitor logs to a store, and would have a training import MLflow. Those of GPUs need pynvml.
"""

import importlib
import importlib.util
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

FIRST_SECONDS, INTERVAL_SECONDS = 1.0, 10.0
LAST_SECONDS = 5.0


@contextmanager
def sampled(path: Path) -> Iterator[None]:
    """Append a row every few seconds while the block runs: `step` (a count), `time`, `system/...`."""
    ended = threading.Event()
    thread = threading.Thread(target=_sample, args=(path, ended), name="system metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LAST_SECONDS)  # the folder may be moved after the block


def _sample(path: Path, ended: threading.Event) -> None:
    step = len(path.read_text().splitlines()) if path.is_file() else 0
    _machine()  # psutil measures since its last call
    wait = FIRST_SECONDS
    while not ended.wait(wait):
        used = {f"system/{name}": round(value, 1) for name, value in {**_machine(), **_gpus()}.items()}
        try:
            with path.open("a") as file:
                file.write(json.dumps({"step": step, "time": time.time(), **used}) + "\n")
        except OSError:  # a full disk, or the folder has gone
            return
        step, wait = step + 1, INTERVAL_SECONDS


def _machine() -> dict[str, float]:
    memory = psutil.virtual_memory()
    return {
        "cpu_utilization_percentage": psutil.cpu_percent(),
        "system_memory_usage_megabytes": memory.used / 1e6,
        "system_memory_usage_percentage": memory.used / memory.total * 100,
        "disk_usage_percentage": psutil.disk_usage(".").percent,
    }


def _gpus() -> dict[str, float]:
    """The GPUs that the process may use, by their numbers on the machine."""
    visible = [part for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.isdigit()]
    if not visible or importlib.util.find_spec("pynvml") is None:
        return {}
    nvml, used = importlib.import_module("pynvml"), {}
    with suppress(nvml.NVMLError):
        nvml.nvmlInit()
        for number in visible:
            gpu = nvml.nvmlDeviceGetHandleByIndex(int(number))
            memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
            used[f"gpu_{number}_utilization_percentage"] = nvml.nvmlDeviceGetUtilizationRates(gpu).gpu
            used[f"gpu_{number}_memory_usage_megabytes"] = memory.used / 1e6
            used[f"gpu_{number}_memory_usage_percentage"] = memory.used / memory.total * 100
            used[f"gpu_{number}_power_usage_watts"] = nvml.nvmlDeviceGetPowerUsage(gpu) / 1000
    return used
