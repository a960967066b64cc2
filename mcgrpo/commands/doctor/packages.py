"""Checks of Python and its packages, against what this project declares of itself (pyproject.toml, as installed)."""

import importlib.metadata
import platform
from collections.abc import Iterable, Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.records import Run
from mcgrpo.study.plan import Config

PROJECT = "mcgrpo"
EXTRAS = ("train", "workflow")
"""What every study needs."""


def check_packages(config: Config, runs: Iterable[Run]) -> Iterator[Check]:
    """Python, what every study needs, and what the settings of this one ask for."""
    yield _check_python()
    declared = list(requirements())
    faults = [fault for each in declared if _is_base(each) and (fault := _fault(each))]
    yield from (
        Check("lacking", "packages", fault, "pip install 'mcgrpo[workflow]', or make setup") for fault in faults
    )
    if not faults:
        yield Check("ok", "packages", f"{sum(map(_is_base, declared))} of {', '.join(EXTRAS)}, all of fitting versions")
    for name, why in wanted(config, list(runs)).items():
        requirement = next((each for each in declared if each.name == name), Requirement(name))
        fault = _fault(requirement)
        yield Check(
            "lacking" if fault else "ok", name, f"{fault or installed(name)} ({why})", fault and f"pip install {name}"
        )
    if config.get("gpus", 0):
        yield from _check_for_gpus()


def _check_python() -> Check:
    allowed = importlib.metadata.metadata(PROJECT)["Requires-Python"]
    fits = SpecifierSet(allowed).contains(platform.python_version())
    return Check("ok" if fits else "lacking", "Python", f"{platform.python_version()}, {allowed} is needed")


def _check_for_gpus() -> Iterator[Check]:
    if (found := installed("torch")) and found.endswith("+cpu"):
        remedy = "install the CUDA build of the same version"
        yield Check("lacking", "torch", f"{found} is the build for CPUs, and the study trains on GPUs", remedy)
    if installed("flash-attn") is None:
        yield Check("warning", "attention", "flash-attn is not installed: torch's own attention takes its place")


def requirements() -> Iterator[Requirement]:
    """What the project declares, of all extras; its extras that stand for others are among them."""
    yield from map(Requirement, importlib.metadata.requires(PROJECT) or [])


def _is_base(requirement: Requirement) -> bool:
    marker = requirement.marker
    return requirement.name != PROJECT and (marker is None or any(marker.evaluate({"extra": e}) for e in EXTRAS))


def installed(name: str) -> str | None:
    """The version of a package, if it is there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fault(requirement: Requirement) -> str:
    """Why a requirement is not met; nothing where it is. Local versions (`+cpu`) count as the public one."""
    found = installed(requirement.name)
    if found is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(found, prereleases=True):
        return f"{requirement.name} {found} is installed, {requirement.specifier} is needed"
    return ""


def wanted(config: Config, runs: list[Run]) -> dict[str, str]:
    """Packages that a study's settings ask for beyond the common ones, and which setting it is."""
    keys = [run.training for run in runs]
    reasons = {
        "peft": "lora" if any(training.get("lora") for training in keys) else "",
        "deepspeed": "sharding: zero3" if any(training.get("sharding") == "zero3" for training in keys) else "",
        "flash-attn": "attn_implementation: flash_attention_2"
        if any(training.get("attn_implementation") == "flash_attention_2" for training in keys)
        else "",
        "vllm": _vllm(config, keys),
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _vllm(config: Config, keys: list[Config]) -> str:
    if any(training.get("use_vllm") for training in keys):
        return "use_vllm"
    return "evaluation.backend: vllm" if config["evaluation"].get("backend") == "vllm" else ""
