"""The settings of a run: the hyper-parameters of its training, and how its completions are drawn.

A study states them in layers. What a later layer says replaces what an earlier one does.
"""

from pathlib import Path
from typing import Any

from mcgrpo.records import Run, SignFlips
from mcgrpo.study.methods import UNTRAINED

Config = dict[str, Any]
"""A study, or a part of it, as its file has it."""
COMPLETION_LENGTH = 512
"""TRL's default of `max_completion_length`."""


class StudyError(ValueError):
    """A study file that cannot be run; the message names the key at fault."""


def hyper_parameters(config: Config, setting: str, *layers: Config) -> Config:
    """The study's `training`, the setting's on top, then `layers`; a null removes the key."""
    merged: Config = {}
    for layer in (config["training"], config["settings"][setting].get("training", {}), *layers):
        merged |= layer
    return {key: value for key, value in merged.items() if value is not None}


def without_nulls(config: Config) -> Config:
    """A study without experiments, and keys of models and data sets, that are null: an overlay leaves them out."""

    def filled(part: Any) -> Any:
        return {name: each for name, each in part.items() if each is not None} if isinstance(part, dict) else part

    parts = {kind: config[kind] for kind in ("models", "datasets") if isinstance(config.get(kind), dict)}
    parts = {kind: {name: filled(spec) for name, spec in part.items()} for kind, part in parts.items()}
    return {key: parts.get(key, filled(part) if key == "experiments" else part) for key, part in config.items()}


def splits_of(spec: Config) -> Config:
    """The splits of a data set: the name of each at its source, and the rows to take; both where it names none."""
    return spec.get("splits", {"train": {}, "test": {}})


def local_files(spec: Config) -> list[Path]:
    """The files that a data set is read from: those of its splits in a `folder`, all in one named under `hub`.

    `datasets.load_dataset` takes a folder in place of a repository.
    """
    if "folder" in spec:
        names = {f"{wanted.get('name', split)}.jsonl" for split, wanted in splits_of(spec).items()}
        return [Path(spec["folder"]).expanduser() / name for name in sorted(names)]
    return sorted(file for file in Path(spec["hub"]).rglob("*") if file.is_file()) if "hub" in spec else []


def evaluation(config: Config, benchmark: str) -> Config:
    """How completions are drawn on a benchmark: the study's `evaluation`, with its `by_benchmark` entry on top."""
    common = {key: value for key, value in config["evaluation"].items() if key != "by_benchmark"}
    return common | config["evaluation"].get("by_benchmark", {}).get(benchmark, {})


def completion_settings(config: Config, run: Run, benchmark: str) -> Config:
    """`--settings` of `mcgrpo.generate` for an evaluation: `evaluation`, with the chat template of the run's training.

    The untrained model takes the chat template of its setting.
    """
    training = hyper_parameters(config, run.setting) if run.method == UNTRAINED else run.training
    return evaluation(config, benchmark) | {"chat_template_kwargs": training.get("chat_template_kwargs", {})}


def rollout_settings(config: Config, run: Run, flips: SignFlips) -> Config:
    """`--settings` of `mcgrpo.generate` for the many rollouts a prompt on which sign flips are measured.

    Args:
        config: the study.
        run: of it.
        flips: how they are measured.
    """
    drawn = {"greedy": False, "samples": flips.rollouts, "prompts": flips.prompts}
    drawn |= {"temperature": flips.temperature, "top_p": 1.0}
    return completion_settings(config, run, flips.benchmark) | drawn


def warm_start(config: Config, model: str) -> Config:
    """`--spec` of `mcgrpo.data.warm_start` for a model: its entry, the rest as in the first setting with the model."""
    setting = next(name for name, each in config["settings"].items() if each["model"] == model)
    training, spec = hyper_parameters(config, setting), config["models"][model]["warm_start"]
    return {
        **spec,
        "prompt": config["settings"][setting]["prompt"],
        "task": config["datasets"][spec["datasets"][0]]["task"],
        "max_new_tokens": training.get("max_completion_length", COMPLETION_LENGTH),
        "bf16": training.get("bf16", False),
        "chat_template_kwargs": training.get("chat_template_kwargs", {}),
        **({"stop": training["stop"]} if "stop" in training else {}),
    }


def first_benchmark(config: Config, setting: str) -> str:
    """The setting's first in-distribution benchmark: checkpoints are selected and sign flips measured on it."""
    return config["settings"][setting]["benchmarks"]["in"][0]


def selects_checkpoint(run: Run) -> bool:
    """Whether the run keeps the checkpoint that does best on the test split, and not its last step."""
    return run.training.get("select_checkpoint", "last") == "best-on-test"
