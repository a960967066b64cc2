"""A study expanded: its runs, what each is evaluated on, and the figures that its results allow.

`python -m mcgrpo.study.plan --config JSON --output plan.json` writes what `collect` and `summarise` need to know of it.
The study is one that `mcgrpo.study.check` has passed; it is all that a plan depends on, no file is looked at.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.records import Plan, PlannedRun, Role, Run, SignFlips
from mcgrpo.study.fit import check_fits, with_batch
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.planned import write_plan
from mcgrpo.study.primary import primary
from mcgrpo.study.protocols import training_changes
from mcgrpo.study.settings import Config, StudyError, first_benchmark, hyper_parameters
from mcgrpo.study.variants import DEFAULT, Flips, flip_variant, flips_of

PLAN_KEYS = (
    "study", "seeds", "gpus", "settings", "training", "rewards", "variants", "experiments", "datasets",
    "grading", "equivalence_margin", "primary", "selections", "questions",
)  # fmt: skip
"""The keys of a study that its plan depends on, beside the number of samples."""
EQUIVALENCE_MARGIN = 0.01
"""The default of `equivalence_margin`: 1 percentage point."""


def expand(config: Config) -> dict[str, PlannedRun]:
    """Every run of the study by its name, once, however many experiments share it, in alphabetical order.

    The untrained model is a run of every setting that is used.

    Raises:
        StudyError: naming the run and the key at fault.
    """
    entries: dict[str, PlannedRun] = {}
    for experiment in config["experiments"].values():
        roles = experiment.get("evaluate", ["in"])
        for run in _runs(config, experiment):
            evaluated = {name: role for name, role in benchmarks(config, run.setting).items() if role in roles}
            entry = PlannedRun(run, evaluated, _flips(config, experiment, run))
            entries[run.name] = _merged(entries[run.name], entry) if run.name in entries else entry
    return dict(sorted(entries.items()))


def _flips(config: Config, experiment: Config, run: Run) -> SignFlips | None:
    """Sign flips are measured on the experiment's trained models, or on the untrained one where it has none."""
    if "sign_flips" not in experiment or (run.method == UNTRAINED and experiment.get("methods")):
        return None
    return SignFlips(first_benchmark(config, run.setting), **experiment["sign_flips"])


def _merged(entry: PlannedRun, other: PlannedRun) -> PlannedRun:
    """The same run, planned by two experiments."""
    if entry.flips and other.flips and entry.flips != other.flips:
        raise StudyError(f"run {entry.run.name}: two experiments measure its sign flips, each in its own way")
    return PlannedRun(entry.run, entry.evaluated | other.evaluated, entry.flips or other.flips)


def runs(config: Config) -> list[Run]:
    """The runs of `expand`."""
    return [entry.run for entry in expand(config).values()]


def _runs(config: Config, experiment: Config) -> Iterator[Run]:
    for setting in experiment["settings"]:
        yield _run(config, setting, UNTRAINED, 0, DEFAULT, 0)
        for variant in variants(experiment):
            for method in experiment.get("methods", []):
                for num_generations in experiment.get("num_generations", []):
                    for seed in experiment.get("seeds", config["seeds"]):
                        yield _run(config, setting, method, num_generations, variant, seed)


def variants(experiment: Config) -> list[str]:
    """The variants of an experiment: those it names, and those of its sweep of injected sign flips."""
    sweep = experiment.get("injected_flips", {})
    flips = [flip_variant(Flips(rate, rule)) for rule in sweep for rate in sweep[rule]]
    return [*experiment.get("variants", []), *flips] or [DEFAULT]


def _run(config: Config, setting: str, method: str, num_generations: int, variant: str, seed: int) -> Run:
    spec = config["settings"][setting]
    task = config["datasets"][spec["dataset"]]["task"]
    trained = method != UNTRAINED
    change = _change(config, variant)
    try:
        training = _training(config, setting, change, method, task) if trained else {}
        estimator = training.pop("estimator", METHODS[method].estimator) if trained else ""
        if trained:
            training = with_batch(training, num_generations, config.get("gpus", 0))
            check_fits(training, num_generations, config.get("gpus", 0))
    except ValueError as error:
        raise StudyError(f"run {setting}/{method}/G{num_generations}/{variant}: {error}") from None
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
        task=task,
        loss_type=METHODS[method].loss_type if trained else "",
        estimator=estimator,
        rewards=change.get("rewards", config.get("rewards", {"accuracy": 1.0})) if trained else {},
        training=training,
    )


def _change(config: Config, variant: str) -> Config:
    """What a variant changes; one of a sweep of flips says so by its name."""
    if flips := flips_of(variant):
        return {"training": {"advantage_flip_rate": flips.rate, "advantage_flip_rule": flips.rule}}
    return {DEFAULT: {}, **config.get("variants", {})}[variant]


def _training(config: Config, setting: str, change: Config, method: str, task: str) -> Config:
    """A training's hyper-parameters: `change` is what its variant changes, for all settings or for this one."""
    protocol = training_changes(change.get("protocol", "paper"), method, task)
    here = change.get("settings", {}).get(setting, {})
    return hyper_parameters(config, setting, protocol, change.get("training", {}), here.get("training", {}))


def generation_gpus(config: Config) -> int:
    """The GPUs of a job that generates completions; none in a study on CPUs."""
    return config["evaluation"].get("vllm_tensor_parallel_size", 1) if config.get("gpus") else 0


def evaluated_at_a_time(config: Config) -> int:
    """How many models the GPUs of a training can evaluate beside each other, at least one."""
    return max(config["gpus"] // generation_gpus(config), 1) if config.get("gpus") else 1


def benchmarks(config: Config, setting: str) -> dict[str, Role]:
    """The benchmarks of a setting, and what each is to it."""
    return {name: role for role, names in config["settings"][setting]["benchmarks"].items() for name in names}


def grading(config: Config) -> list[str]:
    """The protocols of grading: names of `records.PROTOCOLS`, `paper` first."""
    return ["paper", *(protocol for protocol in config.get("grading", []) if protocol != "paper")]


def figures(config: Config, planned: Mapping[str, PlannedRun]) -> list[str]:
    """The figures that the results of a study allow, which `expand` has planned."""
    entries = planned.values()
    trained = [entry.run for entry in entries if entry.run.method != UNTRAINED]
    plain = {run.method for run in trained if run.variant == DEFAULT}
    of_grpo = any(METHODS[method].loss_type == METHODS["grpo"].loss_type for method in plain)
    cells = {(run.setting, run.num_generations, run.method) for run in trained if run.variant == DEFAULT}
    compared = any((*shared, METHODS[method].baseline) in cells for *shared, method in cells)
    others = {run.variant for run in trained} - {DEFAULT}
    swept = {variant for variant in others if flips_of(variant)}
    wanted = {
        "gains-sampled": compared and bool(config["evaluation"]["samples"]),
        "gains-greedy": compared,
        "accuracy-greedy": bool(plain),
        "accuracy-sampled": bool(plain and config["evaluation"]["samples"]),
        "budget": of_grpo and "accuracy" in config.get("rewards", {"accuracy": 1.0}),
        "rewards": bool(plain),
        "latency": {"grpo", "mc-grpo"} <= plain,
        "ood": any("out" in entry.evaluated.values() and entry.run.method != UNTRAINED for entry in entries),
        "injected-flips": bool(swept),
        "variants": bool(others - swept),
        "sign-flips": any(entry.flips for entry in entries),
        "pass-at-k": of_grpo and config["evaluation"]["samples"] > 2,  # two points make no curve
        "rates": any(_is_sweep(trained, variants) for variants in config.get("selections", {}).values()),
        "signal": bool(plain) and any(entry.flips for entry in entries),
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _is_sweep(trained: Iterable[Run], variants: Iterable[str]) -> bool:
    """Whether trainings under these variants have several learning rates."""
    return len({learning_rate(run) for run in trained if run.variant in variants}) > 1


def learning_rate(run: Run) -> float:
    """The learning rate of a training; without one in the study it is TRL's."""
    return run.training.get("learning_rate", 1e-6)


def title(config: Config) -> str:
    """What captions call the study: its title, or else its name, in one line."""
    return " ".join(config.get("title", config["study"]).split())


def plan_of(config: Config) -> Plan:
    """The plan of a study: runs, what each is evaluated on, and how evaluations are graded and compared."""
    samples = config["evaluation"]["samples"]
    entries = expand(config)
    return Plan(
        study=config["study"],
        runs=[entry.run for entry in entries.values()],
        benchmarks={setting: benchmarks(config, setting) for setting in config["settings"]},
        evaluations={name: entry.evaluated for name, entry in entries.items()},
        flips={name: entry.flips for name, entry in entries.items() if entry.flips},
        grading=grading(config),
        equivalence_margin=config.get("equivalence_margin", EQUIVALENCE_MARGIN),
        measures=["greedy", *([f"avg@{samples}"] if samples else [])],
        primary=primary(config, entries.values()),
        selections=config.get("selections", {}),
        questions=config.get("questions", []),
    )


def plan_part(config: Config) -> Config:
    """The part of a study that its plan depends on; a change elsewhere does not rerun the rule `plan`."""
    samples = {"samples": config["evaluation"]["samples"]}
    return {**{key: config[key] for key in PLAN_KEYS if key in config}, "evaluation": samples}


def main() -> None:
    """Write a study's plan."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--config", type=json.loads, required=True, help="the study, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with command_line.errors():
        write_plan(options.output, plan_of(options.config))


if __name__ == "__main__":
    main()
