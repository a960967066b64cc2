"""The files of an archive by their names in it, which are their paths in the study's own layout."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from mcgrpo.records import Plan
from mcgrpo.report.catalogue import CLAIMS, SIGNAL, TABLES
from mcgrpo.study.check import StudyError, check_form
from mcgrpo.study.paths import GROUPS, METRICS, RECORD, ROLLOUTS, ResultFiles, StudyFiles
from mcgrpo.study.plan import Config, variants
from mcgrpo.study.planned import trained_runs
from mcgrpo.sums import FOLDER_LIST, list_of

STUDY, MANIFEST, SUMS = "study/study.json", "MANIFEST.json", FOLDER_LIST
"""The study as it was run (its files merged); what made it; the hash of every other file."""
FORMAT = 5
"""Of archives, in their manifest: counted up where `verify` can no longer make the files of earlier ones again."""
MOST_BYTES, MOST_RUNS = 500_000, 100_000
"""Limits of a study in an archive."""
SEAL = list_of(Path(RECORD)).name
OPTIONAL = ("text", "if there")


def graded(planned: Plan, results: ResultFiles) -> Iterator[tuple[str, str, Path]]:
    """The run, the data set and the file of all grades that a study plans."""
    for run, names in planned.evaluations.items():
        yield from ((run, name, results.grades(run, name)) for name in names)
    for run, spec in planned.flips.items():
        yield run, spec.benchmark, results.rollout_grades(run, spec.benchmark)


def planned_files(config: Config, planned: Plan) -> dict[str, str]:
    """The kind of every file that a study plans.

    `made` is made again by `verify`, `grades` with `--regrade` only; `data` and `training` are what these need, `text`
    is what was graded.
    """
    files, tables = StudyFiles(config["study"]), reports(config)
    results = files.results
    evaluations = [(run, benchmark) for run, each in planned.evaluations.items() for benchmark in each]
    flips = [(run, spec.benchmark) for run, spec in planned.flips.items()]
    trained = [run.name for run in trained_runs(planned)]
    # Signals of user-defined estimators and grades of user-defined tasks are made by code that `verify` does not run
    tasks = {name: config["datasets"][name]["task"] for name in data_sets(planned)}
    own, signals = modules(planned), [results.signals, results.signal_curves, *(tables / name for name in SIGNAL)]
    grades = {True: list[Path](), False: list[Path]()}
    for _, name, path in graded(planned, results):
        grades[":" in tasks[name]].append(path)
    kinds = {
        "made": [results.plan, *results.tables, *(results.flips(*each) for each in flips)]
        + [tables / name for name in (*TABLES, *CLAIMS)]
        + ([] if own else signals),
        "grades": grades[False],
        "data": [results.overlap, *grades[True]]
        + [path for name in data_sets(planned) for path in (files.audit(name), files.data_source(name))],
        "training": [results.run(run) / name for run in trained for name in (RECORD, SEAL, METRICS, GROUPS)],
        "if there": [results.run(run) / ROLLOUTS for run in trained]
        + [results.unfinished(run) / name for run in trained for name in (RECORD, METRICS)]
        + [f"study/{each}" for each in {*own, *module_files(tasks.values())}]
        + (signals if own else []),
        "text": [results.completions(*each) for each in evaluations] + [results.rollouts(*each) for each in flips],
    }
    return {str(path): kind for kind, paths in kinds.items() for path in paths}


def data_sets(planned: Plan) -> list[str]:
    """The data sets that the plan trains or evaluates on."""
    evaluated = {name for run in planned.runs for name in planned.benchmarks[run.setting]}
    return sorted({run.dataset for run in planned.runs} | evaluated)


def reports(config: Config) -> Path:
    """The folder of a study's tables in the archive."""
    return Path("reports", config["study"])


def modules(planned: Plan) -> list[Path]:
    """The modules of user-defined estimators, relative to the study's folder."""
    return module_files(run.estimator for run in planned.runs)


def module_files(parts: Iterable[str]) -> list[Path]:
    """Where the modules of those that are `module:attribute` are, relative to the study's folder, if it has them."""
    names = {part.partition(":")[0] for part in parts if ":" in part}
    return sorted(Path(*name.split(".")).with_suffix(".py") for name in names)


def read_config(path: Path) -> Config:
    """The study of an archive, checked against the schema before anything else is read by it.

    Nothing of it runs, names a module to import or chooses a path: it is JSON, a user-defined estimator or task is
    a name, and every path is made of names that the schema allows.

    Raises:
        StudyError: naming what is not as in a study that this code would run.
    """
    if path.stat().st_size > MOST_BYTES:
        raise StudyError(f"larger than {MOST_BYTES:,} bytes")
    config = json.loads(path.read_text(encoding="utf-8"))
    check_form(config)
    count = 0
    for experiment in config["experiments"].values():
        lists = [experiment.get(key, []) for key in ("settings", "methods", "num_generations")]
        count += math.prod(map(len, [*lists, variants(experiment), experiment.get("seeds", config["seeds"])]))
    if count > MOST_RUNS:
        raise StudyError(f"{count:,} runs, more than {MOST_RUNS:,}")
    return config
