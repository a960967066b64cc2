"""`python -m bench.gpu` (`make gpu-check`): everything about this machine's GPU that we want to know, in one CSV.

Needs no network and at most 10 minutes. Of several GPUs it looks at the first, and in one part at two. What is not
installed, or what no time is left for, is `skipped` with its name. Without a GPU the same runs on the CPU at a tiny
shape, which shows only that it runs. The exit code is 1 if something failed.
"""

import argparse
import csv
import os
import sys
import time
import traceback
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import torch

from bench.gpu.checks import Row, doctor, estimators, laws, machine
from bench.gpu.table import as_markdown

PARTS = ("machine", "doctor", "estimators", "laws", "two-gpus", "steps", "vllm")


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """The parts that are asked for, in their order."""
    end = time.monotonic() + 60 * options.minutes

    def left() -> float:
        return max(end - time.monotonic(), 0.0)

    def two() -> Iterator[Row]:
        from bench.gpu.two_gpus import two_gpus

        if options.device == "cuda" and find_spec("pynvml") is None:
            raise ModuleNotFoundError("nvidia-ml-py, which counts GPUs, is not installed")
        return two_gpus(options.device, options.gpus, left)

    def steps() -> Iterator[Row]:
        from bench.gpu.steps import steps

        return steps(options.device, left)

    def vllm() -> Iterator[Row]:
        if find_spec("vllm") is None:
            raise ModuleNotFoundError("vLLM is not installed")
        from bench.gpu.vllm_steps import steps_with_vllm

        return steps_with_vllm(options.device, left)

    parts = {
        "machine": machine,
        "doctor": lambda: doctor(left()),
        "estimators": lambda: estimators(options.device),
        "laws": lambda: laws(options.device, options.laws, left()),
        "two-gpus": two,
        "steps": steps,
        "vllm": vllm,
    }
    for name in options.parts:
        try:
            found = parts[name]()
        except ImportError as error:
            yield Row(name, status="skipped", note=str(error))
            continue
        try:
            yield from found
        except Exception as error:  # the parts after it are looked at all the same
            traceback.print_exc()
            yield Row(name, status="failed", note=f"{type(error).__name__}: {error}")


def visible() -> list[str]:
    """The GPUs that may be used, as in CUDA_VISIBLE_DEVICES; none where what asks for them is not installed."""
    try:
        from mcgrpo.launch.gpus import gpus

        return [*gpus()]
    except ImportError:
        return []


def main() -> None:
    """Check this machine's GPU; every row is written and printed as it is found."""
    here = visible()
    # One GPU, the first that may be used: of several in one process transformers would make a DataParallel.
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    # As mcgrpo.launch: CUDA counts GPUs as NVML does, vLLM does not compile FlashInfer's sampler, and posts nothing.
    defaults = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_NO_USAGE_STATS": "1"}
    os.environ |= defaults | os.environ
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--csv", type=Path, default=Path("reports/gpu-check.csv"))
    parser.add_argument("--minutes", type=float, default=9.0, help="after which nothing more is started (%(default)s)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--laws", nargs="+", help="tests to run in place of the usual ones")
    options = parser.parse_args(namespace=argparse.Namespace(gpus=here))
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    found = []
    with options.csv.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in rows(options):
            writer.writerow(row)
            file.flush()
            print(row, flush=True)
            found.append(row)
    print(f"\n{as_markdown(found)}")
    failed = sum(row.status == "failed" for row in found)
    print(f"\n{options.csv}: {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
