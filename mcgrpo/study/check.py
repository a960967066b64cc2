"""A study file, checked before anything starts (see `mcgrpo.study.plan` for what it stands for).

What breaks the schema, names something that is not there or does not fit is refused here, before any job starts, with
the place and the culprit in one line. What a data set or a toy model has, the job says that makes it, the first of all.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from mcgrpo import shipped
from mcgrpo.grade.prompts import system_prompt
from mcgrpo.grade.tasks import get_task
from mcgrpo.records import PlannedRun
from mcgrpo.study.context import check_training, context_of
from mcgrpo.study.estimators import check_estimator
from mcgrpo.study.fit import check_room
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.model_config import model_config
from mcgrpo.study.plan import benchmarks, expand
from mcgrpo.study.primary import primary
from mcgrpo.study.rows import rows_of
from mcgrpo.study.schedule import schedule
from mcgrpo.study.settings import Config, StudyError, evaluation, splits_of
from mcgrpo.study.strict_yaml import load
from mcgrpo.study.variants import DEFAULT, Flips, flip_variant, flips_of

ELSEWHERE = {
    "num_generations": "each experiment lists its own",
    "save_steps": "it is a key of the study itself, not of `training`",
    "seed": "`seeds` is a key of the study itself and of experiments",
    "scale_rewards": "the estimator of a method takes its place (docs/estimators.md)",
    "reward_weights": "`rewards` states them",
    "output_dir": "the study's name states it",
}
"""TRL's arguments that a study states in another way, or not in `training`."""


def check(config: Config) -> dict[str, PlannedRun]:
    """The runs of a study, which is refused where it breaks the schema, names what it does not define, or has a G that
    does not fit a batch.

    Also one with fewer rows than a batch has prompts, with lengths that a model's context does not hold, with options
    that its estimator does not use, or with a task, prompt or estimator that is not there or cannot be imported.

    Raises:
        StudyError: for the first mistake found.
    """
    check_form(config)
    for place, find, name in _named(config):
        try:
            find(name)
        except ValueError as error:
            raise StudyError(f"{place}: {error}") from None
    planned = expand(config)
    entries = planned.values()
    _check_measured(entries)
    primary(config, entries)
    contexts = {name: context_of(model_config(config, name)) for name in config["models"]}
    where = ""
    try:
        for name in sorted({each for setting in config["settings"] for each in benchmarks(config, setting)}):
            where = f"evaluation of {name}"
            check_room(evaluation(config, name), "max_new_tokens")
        rows = {name: rows_of(config, name).get("train") for name in config["datasets"]}
        for run in [entry.run for entry in entries if entry.run.estimator]:
            where = f"run {run.name.rpartition('/')[0]}"
            check_estimator(run)
            check_training(run.training, contexts[run.model])
            if (count := rows[run.dataset]) is not None:
                schedule(run, max(config.get("gpus", 0), 1), count)
    except ValueError as error:
        raise StudyError(f"{where}: {error}") from None
    return planned


def check_form(config: Config) -> None:
    """Refuse a study that breaks the schema or names what it does not define; no file is looked at, nothing planned.

    Raises:
        StudyError: for the first mistake found.
    """
    for place, value in _numbers(config):
        if not math.isfinite(value):  # no bound of a schema excludes NaN
            raise StudyError(f"{place}: {value} is no finite number")
    if error := best_match(Draft202012Validator(load(shipped.STUDY_SCHEMA)).iter_errors(config)):
        raise StudyError(_explain(error))
    for where, kind, name in _references(config):
        known = {DEFAULT: {}, **config.get("variants", {})} if kind == "variants" else config[kind]
        if name not in known:
            raise StudyError(f"{where}: no {name!r} under {kind} (there is: {', '.join(known)})")
    for name, setting in config["settings"].items():
        if both := {*setting["benchmarks"]["in"]} & {*setting["benchmarks"].get("out", [])}:
            raise StudyError(f"settings.{name}.benchmarks: {min(both)!r} is named as `in` and as `out`")
    for where, dataset, split in _splits(config):
        if split not in splits_of(config["datasets"][dataset]):
            raise StudyError(f"datasets.{dataset}.splits: no {split!r}, which {where} needs")
    if both := config.get("selections", {}).keys() & config.get("variants", {}).keys():
        raise StudyError(f"selections.{min(both)}: a variant has this name")
    for name, experiment in config["experiments"].items():
        _check_grid(f"experiments.{name}", experiment)
    for name, spec in config["models"].items():
        prompts = sorted({each["prompt"] for each in config["settings"].values() if each["model"] == name})
        if "warm_start" in spec and len(prompts) > 1:
            raise StudyError(f"models.{name}.warm_start: its settings have different prompts ({', '.join(prompts)})")


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """(place, value) of every number with a point."""
    if isinstance(value, float):
        yield place, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _numbers(part, f"{place}.{name}" if place else str(name))


def _explain(error: ValidationError) -> str:
    place = ".".join(map(str, error.absolute_path)) or "the study"
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        culprit = next(key for key in error.instance if key not in known)
        close = difflib.get_close_matches(str(culprit), known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        *above, last = error.absolute_path or [""]
        is_training = last == "training" and above not in (["settings"], ["variants"])
        hint = ELSEWHERE.get(str(culprit), hint) if is_training else hint
        return f"{place}: unknown key {culprit!r}; {hint}"
    if error.validator == "oneOf" and all("required" in option for option in error.validator_value):
        keys = [option["required"][0] for option in error.validator_value]
        given = [key for key in keys if key in error.instance]
        two = f", not {' and '.join(given)}; `{given[0]}: null` removes one" if given else ""
        return f"{place}: exactly one of {', '.join(keys)} is needed{two}"
    if error.validator == "type" and "number" in error.validator_value and isinstance(error.instance, str):
        return f"{place}: {error.instance!r} is text; YAML wants numbers with a point and a signed exponent, as 1.0e-6"
    return f"{place}: {error.message}"


def _references(config: Config) -> Iterator[tuple[str, str, str]]:
    """(place, kind, name) of everything that is named in one part of a study and defined in another."""
    lists: dict[tuple[str, str], Any] = {
        ("evaluation.by_benchmark", "datasets"): config["evaluation"].get("by_benchmark", {}),
        ("primary.settings", "settings"): config.get("primary", {}).get("settings", []),
    }
    for name, model in config["models"].items():
        lists[f"models.{name}.warm_start.datasets", "datasets"] = model.get("warm_start", {}).get("datasets", [])
    for name, setting in config["settings"].items():
        lists[f"settings.{name}.model", "models"] = [setting["model"]]
        lists[f"settings.{name}.dataset", "datasets"] = [setting["dataset"]]
        for role, names in setting["benchmarks"].items():
            lists[f"settings.{name}.benchmarks.{role}", "datasets"] = names
    for name, variant in config.get("variants", {}).items():
        lists[f"variants.{name}.settings", "settings"] = variant.get("settings", {})
    for name, experiment in config["experiments"].items():
        lists[f"experiments.{name}.settings", "settings"] = experiment["settings"]
        lists[f"experiments.{name}.variants", "variants"] = experiment.get("variants", [])
    for name, names in config.get("selections", {}).items():
        lists[f"selections.{name}", "variants"] = names
    return ((where, kind, name) for (where, kind), names in lists.items() for name in names)


def _named(config: Config) -> Iterator[tuple[str, Callable[[str], Any], str]]:
    """(place, what finds it, name) of every task and prompt."""
    for name, spec in config["datasets"].items():
        yield f"datasets.{name}.task", get_task, spec["task"]
    for name, setting in config["settings"].items():
        yield f"settings.{name}.prompt", system_prompt, setting["prompt"]


def _splits(config: Config) -> Iterator[tuple[str, str, str]]:
    """(place, data set, split) of what is trained, evaluated or taught from."""
    for name, setting in config["settings"].items():
        yield f"settings.{name}", setting["dataset"], "train"
        yield from ((f"settings.{name}", benchmark, "test") for benchmark in benchmarks(config, name))
    for name, model in config["models"].items():
        spec = model.get("warm_start", {"datasets": []})
        yield from ((f"models.{name}.warm_start", dataset, "warm") for dataset in spec["datasets"])
        if "until_solved" in spec:
            yield f"models.{name}.warm_start", spec["datasets"][0], "train"


def _check_grid(where: str, experiment: Config) -> None:
    """Methods come with numbers of generations, and sign flips with more rollouts than are taken of them."""
    if bool(experiment.get("methods")) != bool(experiment.get("num_generations")):
        raise StudyError(f"{where}: methods and num_generations are needed together")
    if not (experiment.get("methods") or "sign_flips" in experiment):
        raise StudyError(f"{where}: neither methods nor sign_flips: there is nothing to do")
    for rule, rates in experiment.get("injected_flips", {}).items():
        for rate in rates:
            if flips_of(flip_variant(Flips(rate, rule))) != Flips(rate, rule):
                raise StudyError(f"{where}.injected_flips.{rule}: {rate} has too many digits to name a variant")
            for size in experiment.get("num_generations", []) if rule == "exact" else []:
                if abs(rate * size - round(rate * size)) > 1e-9:
                    raise StudyError(
                        f"{where}.injected_flips.exact: {rate} x {size} (num_generations) = {rate * size:g} rollouts "
                        "of each group, which is not a whole number"
                    )
    flips = experiment.get("sign_flips")
    if flips and flips["rollouts"] <= max(flips["subset_sizes"]):
        raise StudyError(
            f"{where}.sign_flips: rollouts={flips['rollouts']} is not above subset_sizes={flips['subset_sizes']}: the "
            "median is that of one rollout more"
        )


def _check_measured(entries: Iterable[PlannedRun]) -> None:
    """Refuse a study that measures nothing, and sign flips on rollouts of one setting that are drawn in two ways."""
    drawn: dict[tuple[str, str], Any] = {}
    for entry in entries:
        for key in ("prompts", "rollouts", "temperature") if entry.flips else ():
            own = getattr(entry.flips, key)
            if (other := drawn.setdefault((entry.run.setting, key), own)) != own:
                raise StudyError(
                    f"experiments: sign_flips of {entry.run.setting} have {key}={other} and {own}: their "
                    "rates are compared, so all experiments of a setting draw in one way"
                )
    if not drawn and not any(entry.evaluated and entry.run.method != UNTRAINED for entry in entries):
        raise StudyError("experiments: no training is evaluated and no sign flips are measured: nothing to report")
