"""What a study needs on this machine before its first job: local models and data, and the engine that it names."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from mcgrpo.records import Run
from mcgrpo.study.plan import benchmarks
from mcgrpo.study.settings import Config, StudyError

STAND_INS = ("resources", "stand-ins")
"""Where the folders of config/stand-ins.yaml are."""


def datasets_of(config: Config, runs: Iterable[Run]) -> list[str]:
    """The data sets of these runs: what they train on, and the benchmarks of their settings."""
    return sorted({name for run in runs for name in (run.dataset, *benchmarks(config, run.setting))})


def check_folders(config: Config, models: Iterable[str], datasets: Iterable[str]) -> None:
    """Refuse local models and data that are not there: Snakemake would list the missing files of a rule.

    A path under a data set's `hub` has more than one slash, or begins as none of the hub's names does.

    Raises:
        StudyError: naming the key and the path.
    """
    for kind, names in (("models", models), ("datasets", datasets)):
        for name in sorted(names):
            spec = config[kind][name]
            key = "folder" if "folder" in spec else "hub"
            path = spec.get(key, "")
            is_local = key == "folder" or path.count("/") > 1 or path.startswith((".", "/", "~"))
            if is_local and not Path(path).expanduser().is_dir():
                made = " (`make rehearsal` makes it)" if Path(path).parts[:2] == STAND_INS else ""
                raise StudyError(f"{kind}.{name}.{key}: there is no folder {path}{made}")


def check_engine(config: Config) -> None:
    """Refuse an evaluation by vLLM where it is not installed, before anything is trained; print a warning of rollouts.

    Raises:
        StudyError: with the remedy.
    """
    if find_spec("vllm") is not None:
        return
    remedy = "is not installed: make setup REQUIREMENTS=envs/gpu.txt"
    if config["evaluation"].get("backend") == "vllm":
        raise StudyError(f"evaluation.backend: vllm {remedy}")
    if config.get("gpus") and config["training"].get("use_vllm"):
        print(f"warning: transformers draws the rollouts, many times slower: vllm {remedy}", file=sys.stderr)
