"""Whether the GPUs, or the CPU, are new enough for a study and its precision, for `mcgrpo doctor`."""

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mcgrpo.launch.gpus import PRETENDED, gpus
from mcgrpo.study.plan import Config, runs

TURING = (7, 5)
"""The compute capability of the oldest GPUs of CUDA 13."""
AMPERE = (8, 0)
"""The compute capability from which GPUs compute in bf16, and vLLM with it."""
CPUINFO = Path("/proc/cpuinfo")
BF16 = {"amx_bf16", "avx512_bf16", "bf16"}
"""Flags in CPUINFO, of x86 and of ARM, of instructions that multiply in bf16."""
Finding = tuple[str, str, str, str]
"""Status, topic, finding and remedy, as `mcgrpo.commands.doctor.Check` has them."""


def check_precision(config: Config) -> Iterator[Finding]:
    """What is too old of the processors that the study's trainings compute on."""
    if config.get("gpus") and PRETENDED not in os.environ:
        yield from check_cards()
    else:
        yield from check_cpu(config)


def check_cards() -> Iterator[Finding]:
    """Whether the driver and the GPUs are new enough, as NVML says without touching CUDA."""
    if not (uuids := gpus().values()):
        return
    import pynvml

    driver, cuda = pynvml.nvmlSystemGetCudaDriverVersion() // 1000, _major("nvidia-cuda-runtime")
    if driver < cuda:
        remedy = "update the driver (580 or newer for CUDA 13), or install torch for an older CUDA"
        yield "error", "driver", f"for CUDA {driver}; torch is for CUDA {cuda}, and will see no GPU", remedy
    oldest = min(pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByUUID(uuid)) for uuid in uuids)
    if cuda >= 13 and tuple(oldest) < TURING:
        remedy = "a GPU of Turing or newer, or torch for CUDA 12"
        yield "error", "GPU", "compute capability {}.{}; CUDA 13 is for 7.5 and newer".format(*oldest), remedy
    elif tuple(oldest) < AMPERE:
        remedy = "a GPU of Ampere or newer; or `bf16: false`, and `dtype: float32` of `evaluation`"
        yield "warning", "bf16", "compute capability {}.{}; vLLM computes in bf16 from 8.0 on".format(*oldest), remedy


def _major(package: str) -> int:
    """The first number of a package's version; 0 where it is not installed."""
    try:
        return int(version(package).partition(".")[0])
    except PackageNotFoundError:
        return 0


def check_cpu(config: Config) -> Iterator[Finding]:
    """Whether a study in bf16 is on a CPU that would emulate it. Nothing is said where Linux does not say."""
    in_bf16 = config["evaluation"].get("dtype") == "bfloat16" or any(run.training.get("bf16") for run in runs(config))
    if in_bf16 and CPUINFO.is_file() and BF16.isdisjoint(CPUINFO.read_text().split()):
        finding = "this CPU has no bf16 instructions: a training step takes many times as long as in float32"
        remedy = "name config/float32.yaml after the study, which sets `bf16: false` and `dtype: float32`"
        yield "warning", "bf16", finding, remedy
