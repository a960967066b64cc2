"""Checks of Python and its packages against the project's own requirements (pyproject.toml, as installed)."""

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.records import Run
from mcgrpo.study.plan import Config

PROJECT = "mcgrpo"
EXTRAS = ("train", "workflow")
"""What every study needs."""
FLASH = "flash_attention_2"


def check_packages(config: Config, runs: Sequence[Run]) -> Iterator[Check]:
    """Python, the packages that every study needs, and those that this study's settings need."""
    needed = metadata(PROJECT)["Requires-Python"]
    fits = SpecifierSet(needed).contains(platform.python_version())
    yield Check("ok" if fits else "error", "Python", f"{platform.python_version()}, needed: {needed}")
    declared = [Requirement(text) for text in requires(PROJECT) or []]
    base = [each for each in declared if _is_base(each)]
    faults = [fault for each in base if (fault := _fault(each))]
    yield from (Check("error", "packages", fault, "pip install 'mcgrpo[workflow]', or make setup") for fault in faults)
    if not faults:
        yield Check("ok", "packages", f"{len(base)} required packages are installed")
    for name, why in _wanted(config, runs).items():
        requirement = next((each for each in declared if each.name == name), Requirement(name))
        if fault := _fault(requirement):
            yield Check("error", name, f"{fault} ({why})", f"pip install '{name}{requirement.specifier}'")
        else:
            yield Check("ok", name, f"{version(name)} ({why})")
    if config.get("gpus", 0) and (_installed("torch") or "").endswith("+cpu"):
        yield Check("error", "torch", "the CPU build is installed", "install the CUDA build of the same version")


def _is_base(requirement: Requirement) -> bool:
    marker = requirement.marker
    return requirement.name != PROJECT and (marker is None or any(marker.evaluate({"extra": e}) for e in EXTRAS))


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _fault(requirement: Requirement) -> str:
    """Why a requirement is not met; empty if it is. Local versions (`+cpu`) count as the public one."""
    installed = _installed(requirement.name)
    if installed is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(installed, prereleases=True):
        return f"{requirement.name} {installed} is installed, {requirement.specifier} is needed"
    return ""


def _wanted(config: Config, runs: Sequence[Run]) -> dict[str, str]:
    """Packages that only some settings need -> the setting of this study that does."""
    reasons = {}
    for training in (run.training for run in runs):
        needs = {
            "peft": training.get("lora") and "lora",
            "deepspeed": training.get("sharding") == "zero3" and "sharding: zero3",
            "flash-attn": training.get("attn_implementation") == FLASH and f"attn_implementation: {FLASH}",
            "vllm": training.get("use_vllm") and "use_vllm",
        }
        reasons |= {name: why for name, why in needs.items() if why}
    if config["evaluation"].get("backend") == "vllm":
        reasons.setdefault("vllm", "evaluation.backend: vllm")
    return reasons
