"""The machine, `mcgrpo doctor`, and the laws that hold to the bit or up to rounding."""

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import torch

from mcgrpo.estimators import ESTIMATORS, estimate

ROOT = Path(__file__).parents[2]
PACKAGES = ("transformers", "trl", "accelerate", "peft", "datasets", "vllm", "flash-attn", "snakemake", "mcgrpo")
STUDY = "config/gpu-small.yaml"
G = 4
LAWS = (
    "tests/trainer/test_trainer.py::TestMeanIsTRL",
    "tests/trainer/test_compact.py::TestGradients::test_are_those_of_all_rows",
    "tests/trainer/test_compact.py::TestWithAPenalty",
    "tests/trainer/test_resume.py::test_a_resumed_training_ends_as_an_uninterrupted_one",
    "tests/trainer/test_processes.py::TestTwoAreOne",
    "tests/trainer/test_processes.py::TestCompact",
)
"""Our mean is TRL's bit for bit, in fp32 and bf16; compact updates; resumed trainings; two processes, on one GPU."""


class Row(NamedTuple):
    """A row of the table: a part of the check, what was looked at, and a quantity of it with its unit in the name."""

    part: str
    case: str = ""
    quantity: str = ""
    value: str | float = ""
    status: str = "ok"
    note: str = ""

    def __str__(self) -> str:
        value = f"{self.value:.4g}" if isinstance(self.value, float) else self.value
        return f"{self.status:8} {self.part:11} {self.case:40} {self.quantity:22} {value} {self.note}".rstrip()


def machine() -> Iterator[Row]:
    """The versions of what decides on results, and the card."""
    yield Row("machine", "Python", "version", platform.python_version())
    yield Row("machine", "torch", "version", torch.__version__, note=f"CUDA {torch.version.cuda}")
    for name in PACKAGES:
        try:
            yield Row("machine", name, "version", version(name))
        except PackageNotFoundError:
            yield Row("machine", name, "version", status="skipped", note="not installed")
    if not torch.cuda.is_available():
        yield Row("machine", "GPU", status="skipped", note="torch sees none")
        return
    card = torch.cuda.get_device_properties(0)
    yield Row("machine", card.name, "memory, GiB", card.total_memory / 2**30)


def doctor(seconds: float) -> Iterator[Row]:
    """The lines of `mcgrpo doctor`; its findings are no failures of this check."""
    command = [sys.executable, "-m", "mcgrpo.commands.doctor", STUDY]
    done = run(command, seconds, HF_HUB_OFFLINE="1")
    lines = re.findall(r"^(ok|warning|error) +(\S+(?: set)?) +(.+)$", done.stdout, re.MULTILINE)
    if not lines:
        yield Row("doctor", STUDY, status="skipped", note=last_line(done.stderr))
    for finding, topic, text in lines:
        yield Row("doctor", topic, "finding", finding, note=text)


def estimators(device: str) -> Iterator[Row]:
    """Every estimator, on the device and on the CPU; with torch alone."""
    for name, rule in ESTIMATORS.items():
        generator = torch.Generator().manual_seed(0)
        rewards = torch.randint(0, 2, (512, G + rule.extra_rollouts), generator=generator).float()
        rewards[0, 0] = torch.nan
        here = estimate(rewards, name, G)
        there = estimate(rewards.to(device), name, G)
        largest = (here[0] - there[0].cpu()).abs().max().item()
        same = largest <= 1e-5 * here[0].abs().max().item() and torch.equal(here[1], there[1].cpu())
        yield Row("estimators", name, "largest difference", largest, "ok" if same else "failed", f"{device} and cpu")


def laws(device: str, chosen: Sequence[str] | None, seconds: float) -> Iterator[Row]:
    """A row for each test, which computes on the device."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "laws.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        done = run([*command, *(chosen or LAWS)], seconds, MCGRPO_TEST_DEVICE=device)
        found = list(ElementTree.parse(report).iter("testcase")) if report.is_file() else []
    if not found:
        yield Row("laws", status="skipped", note=last_line(done.stderr) or last_line(done.stdout))
    for test in found:
        fault = next((test.find(kind) for kind in ("failure", "error", "skipped") if test.find(kind) is not None), None)
        status = "ok" if fault is None else "skipped" if fault.tag == "skipped" else "failed"
        note = "" if fault is None else last_line(fault.get("message", "")) or last_line(fault.text or "")
        yield Row("laws", f"{test.get('classname')}::{test.get('name')}", "seconds", test.get("time"), status, note)


def run(command: Sequence[str], seconds: float, **environment: str) -> subprocess.CompletedProcess:
    """A program of its own, with what it printed until it ended or ran out of time."""
    called = {"cwd": ROOT, "env": {**os.environ, **environment}, "capture_output": True, "text": True}
    try:
        return subprocess.run(command, timeout=seconds, **called)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"not finished after {seconds:.0f} s")


def last_line(text: str) -> str:
    """The last line that is not blank: that of the exception, at the end of a traceback."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
