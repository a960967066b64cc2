"""Checks of packages against the project's own requirements (pyproject.toml, as installed)."""

from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.records import Run
from mcgrpo.study.plan import Config

EXTRAS = ("", "train", "workflow")
"""What every study needs."""


def check_packages(config: Config, runs: Sequence[Run]) -> Iterator[Check]:
    """The packages that every study needs, and those that this study's settings need."""
    declared = [Requirement(text) for text in requires("mcgrpo") or []]
    base = [each for each in declared if each.name != "mcgrpo" and _applies(each)]
    faults = [fault for each in base if (fault := _fault(each))]
    for fault in faults:
        yield Check("error", "packages", fault, "pip install 'mcgrpo[workflow]', or make setup")
    if not faults:
        yield Check("ok", "packages", f"{len(base)} required packages are installed")
    for name, why in _wanted(config, runs).items():
        requirement = next((each for each in declared if each.name == name), Requirement(name))
        fault = _fault(requirement)
        remedy = f"pip install '{name}{requirement.specifier}'" if fault else ""
        yield Check("error" if fault else "ok", name, f"{fault or version(name)} ({why})", remedy)
    if config.get("gpus", 0) and version("torch").endswith("+cpu"):
        yield Check("error", "torch", "the CPU build is installed", "install the CUDA build of the same version")


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in EXTRAS)


def _fault(requirement: Requirement) -> str:
    """Why a requirement is not met; empty if it is. Local versions (`+cpu`) count as the public one."""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    fits = requirement.specifier.contains(installed, prereleases=True)
    return "" if fits else f"{requirement.name} {installed} is installed, {requirement.specifier} is needed"


def _wanted(config: Config, runs: Sequence[Run]) -> dict[str, str]:
    """Packages that only some settings need -> the setting of this study that does."""
    reasons = {"vllm": "evaluation.backend: vllm"} if config["evaluation"].get("backend") == "vllm" else {}
    for training in (run.training for run in runs):
        needs = {
            "peft": training.get("lora") and "lora",
            "flash-attn": training.get("attn_implementation") == "flash_attention_2" and "flash_attention_2",
            "vllm": training.get("use_vllm") and "use_vllm",
        }
        reasons |= {name: why for name, why in needs.items() if why}
    return reasons
