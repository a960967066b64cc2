"""A study file, checked before anything starts (see `mcgrpo.study.plan` for what it stands for).

What breaks the schema, names something that is not there or does not fit is refused here, before any job starts, with
the place and the culprit in one line. Whether a toy model can be built is seen by the job that builds it.
"""

import difflib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from mcgrpo.records import PROTOCOL_SUFFIXES
from mcgrpo.study import strict_yaml
from mcgrpo.study.estimators import check_estimator
from mcgrpo.study.fit import check_prompts
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, PlannedRun, benchmarks, evaluations, expand
from mcgrpo.study.primary import primary
from mcgrpo.study.rows import rows_of
from mcgrpo.study.settings import StudyError, evaluation, local_files, splits_of
from mcgrpo.study.variants import DEFAULT, Flips, flip_variant, flips_of

_EXPONENT = re.compile(r"([+-]?[0-9]+)(\.[0-9]+)?\.?[eE]([+-]?)([0-9]+)")


def load(file: Path) -> Config:
    """A file of a study, unchecked.

    Raises:
        StudyError: naming the file that cannot be read, and the line at fault.
    """
    try:
        return strict_yaml.load(file)
    except strict_yaml.YamlError as error:
        raise StudyError(str(error)) from None


def check(config: Config, schema: Config) -> None:
    """Refuse a study that breaks the schema, names what it does not define, or has a G that does not fit a batch.

    Also one with folders of its own that are not here, with fewer rows than a batch has prompts, with options that its
    estimator does not use, or with an estimator of its own that fails when it is tried.

    Raises:
        StudyError: for the first mistake found.
    """
    check_form(config, schema)
    for kind in ("models", "datasets"):
        for name, spec in config[kind].items():
            if "folder" in spec and not Path(spec["folder"]).expanduser().is_dir():
                raise StudyError(f"{kind}.{name}.folder: {spec['folder']} is not a folder")
            if kind == "datasets" and (missing := [path for path in local_files(spec) if not path.is_file()]):
                raise StudyError(f"{kind}.{name}.folder: no {missing[0].name} in {spec['folder']}")
    entries = expand(config).values()
    _check_measured(config, entries)
    runs = [entry.run for entry in entries]
    primary(config, runs, evaluations(config))
    rows = {name: _rows(config, name) for name in {run.dataset for run in runs if run.estimator}}
    for run in filter(lambda run: run.estimator, runs):
        try:
            check_estimator(run)
            if (count := rows[run.dataset]) is not None:
                check_prompts(count, run.dataset, run.training, max(config.get("gpus", 0), 1), run.num_generations)
        except ValueError as error:
            raise StudyError(f"run {run.name.rpartition('/')[0]}: {error}") from None


def _rows(config: Config, dataset: str) -> int | None:
    """Rows of a data set to train on, as far as they can be known without the hub; else the most that it may have."""
    most = splits_of(config["datasets"][dataset]).get("train", {}).get("rows")
    return rows_of(config, dataset).get("train", most)


def check_form(config: Config, schema: Config) -> None:
    """Refuse a study that breaks the schema or names what it does not define; no file is looked at, nothing planned.

    Raises:
        StudyError: for the first mistake found.
    """
    leave_out(config)
    if error := best_match(Draft202012Validator(schema).iter_errors(config)):
        raise StudyError(_explain(error))
    _check_names(config)
    _check_splits(config)
    _check_warm_starts(config)


def leave_out(config: Config) -> None:
    """Remove experiments, and keys of models and data sets, that are null: an overlay leaves them out."""
    entries = [each for kind in ("models", "datasets") for each in (config.get(kind) or {}).values()]
    for part in (config.get("experiments"), *entries):
        for name in [name for name, each in part.items() if each is None] if isinstance(part, dict) else ():
            del part[name]


def _explain(error: ValidationError) -> str:
    place = ".".join(map(str, error.absolute_path)) or "the study"
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        culprit = next(key for key in error.instance if key not in known)
        close = difflib.get_close_matches(str(culprit), known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        return f"{place}: unknown key {culprit!r}; {hint}"
    if error.validator == "oneOf" and all("required" in option for option in error.validator_value):
        keys = [option["required"][0] for option in error.validator_value]
        return f"{place}: exactly one of {', '.join(keys)} is needed"
    if error.validator == "type" and "number" in error.validator_value and (number := _as_number(error.instance)):
        return f"{place}: YAML reads {error.instance} as text; write {number}"
    return f"{place}: {error.message}"


def _as_number(text: Any) -> str:
    """A number with an exponent as YAML 1.1 wants it, with a point and the exponent's sign; empty for other text."""
    match = _EXPONENT.fullmatch(text) if isinstance(text, str) else None
    if not match:
        return ""
    whole, fraction, sign, digits = match.groups()
    return f"{whole}{fraction or '.0'}e{sign or '+'}{digits}"


def _check_names(config: Config) -> None:
    def known(name: str, kind: str, where: str) -> None:
        if name not in _defined(config, kind):
            raise StudyError(f"{where}: no {name!r} under {kind} (there is: {', '.join(_defined(config, kind))})")

    for name, setting in config["settings"].items():
        where = f"settings.{name}"
        known(setting["model"], "models", f"{where}.model")
        known(setting["dataset"], "datasets", f"{where}.dataset")
        for role, names in setting["benchmarks"].items():
            for benchmark in names:
                known(benchmark, "datasets", f"{where}.benchmarks.{role}")
        if len(named := [*itertools.chain(*setting["benchmarks"].values())]) > len(set(named)):
            twice = next(benchmark for benchmark in named if named.count(benchmark) > 1)
            raise StudyError(f"{where}.benchmarks: {twice!r} is named twice: a benchmark is `in` or `out`")
    for name, suffix in itertools.product(config["datasets"], filter(None, PROTOCOL_SUFFIXES.values())):
        if name.endswith(suffix):
            raise StudyError(f"datasets.{name}: grades under another protocol end in {suffix}, choose another name")
    for name in config["evaluation"].get("by_benchmark", {}):
        known(name, "datasets", "evaluation.by_benchmark")
    for setting in config.get("primary", {}).get("settings", []):
        known(setting, "settings", "primary.settings")
    for name, experiment in config["experiments"].items():
        for setting in experiment["settings"]:
            known(setting, "settings", f"experiments.{name}.settings")
        for variant in experiment.get("variants", []):
            known(variant, "variants", f"experiments.{name}.variants")
        _check_grid(name, experiment)
    for name, variant in config.get("variants", {}).items():
        if name == DEFAULT or flips_of(name):
            raise StudyError(f"variants.{name}: this name is taken (it stands for what it says), choose another")
        for setting in variant.get("settings", {}):
            known(setting, "settings", f"variants.{name}.settings")


def _check_grid(name: str, experiment: Config) -> None:
    """Methods come with numbers of generations, and a sweep of flips has no other variants."""
    if bool(experiment.get("methods")) != bool(experiment.get("num_generations")):
        raise StudyError(f"experiments.{name}: methods and num_generations are needed together")
    if not experiment.get("methods") and "sign_flips" not in experiment:
        raise StudyError(f"experiments.{name}: neither methods nor sign_flips: there is nothing to do")
    for rule, rates in experiment.get("injected_flips", {}).items():
        for rate in rates:
            if flips_of(flip_variant(Flips(rate, rule))) != Flips(rate, rule):
                raise StudyError(
                    f"experiments.{name}.injected_flips.{rule}: {rate} has too many digits to name a variant"
                )
            for size in experiment["num_generations"] if rule == "exact" else ():
                if abs(rate * size - round(rate * size)) > 1e-9:
                    raise StudyError(
                        f"experiments.{name}.injected_flips.exact: {rate} x {size} (num_generations) = {rate * size:g} "
                        "rollouts of each group, which is not a whole number"
                    )
    flips = experiment.get("sign_flips", {})
    if flips and flips["rollouts"] <= max(flips["subset_sizes"]):
        raise StudyError(
            f"experiments.{name}.sign_flips: rollouts={flips['rollouts']} is not above subset_sizes="
            f"{flips['subset_sizes']}: the median is that of one rollout more"
        )
    if "injected_flips" in experiment and "variants" in experiment:
        raise StudyError(f"experiments.{name}: injected_flips makes its own variants, leave out 'variants'")


def _check_splits(config: Config) -> None:
    """A data set that is trained on has a train split, a benchmark a test split, and a toy one says how many rows."""
    for name, setting in config["settings"].items():
        for role, dataset in [("train", setting["dataset"]), *(("test", each) for each in benchmarks(config, name))]:
            if role not in splits_of(config["datasets"][dataset]):
                raise StudyError(f"datasets.{dataset}.splits: no {role!r}, which settings.{name} needs")
    for name, spec in config["datasets"].items():
        if "toy" in spec and (missing := [split for split, wanted in splits_of(spec).items() if "rows" not in wanted]):
            raise StudyError(f"datasets.{name}.splits.{missing[0]}.rows: needed, a toy data set is made to size")


def _check_warm_starts(config: Config) -> None:
    """A warm start is trained on `warm` splits, with the prompt that all settings of the model have."""
    for name, spec in config["models"].items():
        for index, dataset in enumerate(spec.get("warm_start", {}).get("datasets", [])):
            where = f"models.{name}.warm_start.datasets"
            if dataset not in config["datasets"]:
                raise StudyError(f"{where}: no {dataset!r} under datasets (there is: {', '.join(config['datasets'])})")
            needed = ["warm", *(["train"] if index == 0 and "until_solved" in spec["warm_start"] else [])]
            if missing := [split for split in needed if split not in splits_of(config["datasets"][dataset])]:
                raise StudyError(f"datasets.{dataset}.splits: no {missing[0]!r}, which models.{name}.warm_start needs")
        prompts = sorted({each["prompt"] for each in config["settings"].values() if each["model"] == name})
        if "warm_start" in spec and len(prompts) > 1:
            raise StudyError(f"models.{name}.warm_start: its settings have different prompts ({', '.join(prompts)})")


def _check_measured(config: Config, entries: Iterable[PlannedRun]) -> None:
    """Refuse a study that measures nothing, sign flips on rollouts drawn in two ways, and prompts without room."""
    found: dict[tuple[str, str], Any] = {}
    scored = False
    for entry in entries:
        roles = {*benchmarks(config, entry.run.setting).values()} & entry.roles
        scored |= bool(entry.flips or (roles and entry.run.method != UNTRAINED))
        for key in ("prompts", "rollouts", "temperature") if entry.flips else ():
            if (other := found.setdefault((entry.run.setting, key), entry.flips[key])) != entry.flips[key]:
                raise StudyError(
                    f"experiments: sign_flips of {entry.run.setting} have {key}={other} and {entry.flips[key]}: their "
                    "rates are compared, so all experiments of a setting draw in one way"
                )
    if not scored:
        raise StudyError("experiments: no training is evaluated and no sign flips are measured: nothing to report")
    for benchmark in sorted({each for setting in config["settings"] for each in benchmarks(config, setting)}):
        drawn = evaluation(config, benchmark)
        room, completion = drawn.get("vllm_max_model_length"), drawn["max_new_tokens"]
        if room is not None and room <= completion:
            raise StudyError(
                f"evaluation of {benchmark}: vllm_max_model_length={room} leaves no room for a prompt beside "
                f"max_new_tokens={completion}"
            )


def _defined(config: Config, kind: str) -> Config:
    return {DEFAULT: {}, **config.get("variants", {})} if kind == "variants" else config[kind]
