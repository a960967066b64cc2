"""A study file, checked and expanded into runs. Used by the Snakefile and by `python -m mcgrpo.study`.

Every mistake that can be seen in the file alone is refused here, before any job starts, with the place and the
culprit in one line.
"""

import argparse
import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from mcgrpo.files import write_json
from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.records import Role, Run

Config = dict[str, Any]


PLANNED = ("study", "seeds", "settings", "training", "rewards", "variants", "experiments", "datasets", "protocols")
"""The keys of a study that its plan depends on."""


class StudyError(ValueError):
    """A study file that cannot be run; the message names the key at fault."""


def check(config: Config, schema: Config) -> None:
    """Refuse a study that breaks the schema, names what it does not define, or has a G that does not fit a batch.

    Raises:
        StudyError: for the first mistake found.
    """
    if error := best_match(Draft202012Validator(schema).iter_errors(config)):
        raise StudyError(_explain(error))
    _check_names(config)
    _check_splits(config)
    for kind in ("models", "datasets"):
        for name, spec in config[kind].items():
            if "folder" in spec and not Path(spec["folder"]).expanduser().is_dir():
                raise StudyError(f"{kind}.{name}.folder: {spec['folder']} is not a folder")
    for run in runs(config):
        _check_batch(run, max(config.get("gpus", 0), 1))


def _explain(error: ValidationError) -> str:
    place = ".".join(map(str, error.absolute_path)) or "the study"
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        culprit = next(key for key in error.instance if key not in known)
        close = difflib.get_close_matches(culprit, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        return f"{place}: unknown key {culprit!r}; {hint}"
    if error.validator == "oneOf" and all("required" in option for option in error.validator_value):
        keys = [option["required"][0] for option in error.validator_value]
        return f"{place}: exactly one of {', '.join(keys)} is needed"
    return f"{place}: {error.message}"


def _check_names(config: Config) -> None:
    def known(name: str, kind: str, where: str) -> None:
        if name not in _defined(config, kind):
            raise StudyError(f"{where}: no {name!r} under {kind} (there is: {', '.join(_defined(config, kind))})")

    for name, setting in config["settings"].items():
        where = f"settings.{name}"
        known(setting["model"], "models", f"{where}.model")
        known(setting["dataset"], "datasets", f"{where}.dataset")
        for role, benchmarks in setting["benchmarks"].items():
            for benchmark in benchmarks:
                known(benchmark, "datasets", f"{where}.benchmarks.{role}")
    for name, experiment in config["experiments"].items():
        for setting in experiment["settings"]:
            known(setting, "settings", f"experiments.{name}.settings")
        for variant in experiment.get("variants", []):
            known(variant, "variants", f"experiments.{name}.variants")


def _check_splits(config: Config) -> None:
    """A data set that is trained on has a train split, a benchmark a test split, and a toy one says how many rows."""
    for name, setting in config["settings"].items():
        for role, dataset in [("train", setting["dataset"]), *(("test", each) for each in benchmarks(config, name))]:
            splits = config["datasets"][dataset].get("splits", {role: {}})
            if role not in splits:
                raise StudyError(f"datasets.{dataset}.splits: no {role!r}, which settings.{name} needs")
    for name, spec in config["datasets"].items():
        splits = spec.get("splits", {"train": {}, "test": {}})
        if "toy" in spec and (missing := [split for split, wanted in splits.items() if "rows" not in wanted]):
            raise StudyError(f"datasets.{name}.splits.{missing[0]}.rows: needed, a toy data set is made to size")


def _defined(config: Config, kind: str) -> Config:
    return {"default": {}, **config.get("variants", {})} if kind == "variants" else config[kind]


def _check_batch(run: Run, processes: int) -> None:
    if run.method == UNTRAINED:
        return
    training = run.training
    if "per_device_train_batch_size" not in training:
        raise StudyError(f"run {run.name}: training needs prompts_per_step or per_device_train_batch_size")
    rows = training["per_device_train_batch_size"]
    steps = training.get("steps_per_generation", training.get("gradient_accumulation_steps", 1))
    if rows * steps % run.num_generations:
        raise StudyError(
            f"run {run.name}: num_generations={run.num_generations} does not divide the {rows * steps} rows that "
            f"each of {processes} process(es) generates at a time (per_device_train_batch_size={rows} x "
            f"steps_per_generation={steps})"
        )


def runs(config: Config) -> list[Run]:
    """Every run of the study, once, however many experiments share it; an untrained run for each setting used."""
    found: dict[str, Run] = {}
    for experiment in config["experiments"].values():
        for run in _expand(config, experiment):
            found.setdefault(run.name, run)
    return [found[name] for name in sorted(found)]


def _expand(config: Config, experiment: Config) -> Iterator[Run]:
    for setting in experiment["settings"]:
        yield _run(config, setting, UNTRAINED, 0, "default", 0)
        for variant in experiment.get("variants", ["default"]):
            for method in experiment["methods"]:
                for num_generations in experiment["num_generations"]:
                    for seed in config["seeds"]:
                        yield _run(config, setting, method, num_generations, variant, seed)


def _run(config: Config, setting: str, method: str, num_generations: int, variant: str, seed: int) -> Run:
    spec = config["settings"][setting]
    change = _defined(config, "variants")[variant]
    trained = method != UNTRAINED
    training = {**config["training"], **spec.get("training", {}), **change.get("training", {})} if trained else {}
    if "prompts_per_step" in training:
        if "per_device_train_batch_size" in training:
            both = "prompts_per_step and per_device_train_batch_size"
            raise StudyError(f"settings.{setting}, variant {variant}: training has both {both}, one is needed")
        training["per_device_train_batch_size"] = training.pop("prompts_per_step") * num_generations
    return Run(
        study=config["study"],
        setting=setting,
        method=method,
        num_generations=num_generations,
        variant=variant,
        seed=seed,
        model=spec["model"],
        dataset=spec["dataset"],
        prompt=spec["prompt"],
        task=config["datasets"][spec["dataset"]]["task"],
        loss_type=METHODS[method].loss_type if trained else "",
        estimator=METHODS[method].estimator if trained else "",
        rewards=change.get("rewards", config.get("rewards", {"accuracy": 1.0})) if trained else {},
        training=training,
    )


def benchmarks(config: Config, setting: str) -> dict[str, Role]:
    """The benchmarks that runs of a setting are evaluated on, and what each is to it."""
    return {name: role for role, names in config["settings"][setting]["benchmarks"].items() for name in names}


def figures(config: Config) -> list[str]:
    """The figures that the study's results allow: `ood` needs a benchmark that is out of distribution."""
    used = {setting for experiment in config["experiments"].values() for setting in experiment["settings"]}
    names = ["accuracy-greedy", "rewards"]
    if config["evaluation"]["samples"]:
        names.insert(1, "accuracy-sampled")
    if any("out" in benchmarks(config, setting).values() for setting in used):
        names.append("ood")
    return names


def protocols(config: Config) -> list[str]:
    """The protocols of evaluation: names of `records.PROTOCOL_SUFFIXES`."""
    return config.get("protocols", ["paper"])


def plan(config: Config) -> Config:
    """What `collect` needs to find every result: the runs, the benchmarks of each setting, and the protocols."""
    return {
        "study": config["study"],
        "runs": [vars(run) for run in runs(config)],
        "benchmarks": {setting: benchmarks(config, setting) for setting in config["settings"]},
        "protocols": protocols(config),
    }


def main() -> None:
    """Write a study's plan: `python -m mcgrpo.study --config JSON --output plan.json`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--config", type=json.loads, required=True, help="the study, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    write_json(options.output, plan(options.config))


if __name__ == "__main__":
    main()
