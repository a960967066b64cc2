"""What belongs into a study's bundle: archive name -> file, in the study's own layout."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcgrpo.analyse.collect import collect
from mcgrpo.files import RecordError, read_json
from mcgrpo.study.check import StudyError
from mcgrpo.study.estimators import with_neighbours
from mcgrpo.study.lock import lock_file
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import ResultFiles, StudyFiles
from mcgrpo.study.plan import Config, as_json
from mcgrpo.study.read import ROOT

STUDY = "study/study.json"
"""The study as it was run: its files laid over one another, and pinned."""
PUBLISHED, CLAIMS = "config/published.csv", "config/claims.yaml"
REPORTS = (
    "tables.tex", "tables.md", "tables.csv", "headline.md", "headline.tex", "timings.tex", "timings.md", "values.tex",
    "claims.tex", "claims.md", "claims.csv",
)  # fmt: skip
UNFINISHED = ("run.json", "metrics.jsonl")
RELATIVE = ResultFiles()
"""Paths below a study's results, here and in the archive."""
NO_FILE = ": no such file"
"""What is said of a file that is missing, after its name."""


@dataclass
class Contents:
    """Files by their name in the archive, the names of the study files in order, and what is missing but planned."""

    files: dict[str, Path] = field(default_factory=dict)
    study_files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, name: str, path: Path) -> None:
        """A file that should be there."""
        if path.is_file():
            self.files[name] = path
        else:
            self.missing.append(f"{name}{NO_FILE}")

    def add_folder(self, name: str, folder: Path) -> None:
        """Whatever lies in a folder; hidden files are half-written ones."""
        for path in folder.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                self.files[f"{name}/{path.relative_to(folder)}"] = path


def results(config: Config) -> str:
    """The folder of a study's results, here and in the archive."""
    return str(StudyFiles(config["study"]).results.folder)


def reports(config: Config) -> str:
    """The folder of a study's tables in the archive."""
    return f"reports/{config['study']}"


def checked_plan(config: Config) -> dict[str, Any]:
    """The plan that a study was run by.

    Raises:
        StudyError: where there is none, or it is not the plan of this study.
    """
    path = StudyFiles(config["study"]).results.plan
    try:
        found, wanted = read_json(path), json.loads(json.dumps(as_json(config)))
    except RecordError as error:
        raise StudyError(f"{error}: nothing of study {config['study']!r} has been run here") from None
    odd = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if odd:
        raise StudyError(f"{path}: {odd[0]} differs from these study files; name those that it was run with")
    return found


def contents(config: Config, layers: list[Path], planned: dict[str, Any], completions: bool = False) -> Contents:
    """Everything that a study's numbers come from.

    Args:
        config: the study.
        layers: its files, from the bottom up.
        planned: its plan.
        completions: whether to take along the text that was graded.
    """
    found = Contents()
    for place, layer in enumerate(layers):
        found.study_files.append(f"study/{place}-{layer.name}")
        found.add(found.study_files[-1], layer)
        if lock_file(layer).is_file():
            found.add(str(lock_file(found.study_files[-1])), lock_file(layer))
    for module in own_modules(planned):
        found.files[f"study/{module}"] = module
    for name in (PUBLISHED, CLAIMS):
        found.add(name, ROOT / name)
    for path in (ROOT / "envs").glob("*.txt"):
        found.add(f"envs/{path.name}", path)
    _add_results(found, config, planned, completions)
    for name in REPORTS:
        found.add(f"{reports(config)}/{name}", Path(config["reports"]) / name)
    found.missing += not_there(planned, Path(results(config)))
    return found


def _add_results(found: Contents, config: Config, planned: dict[str, Any], completions: bool) -> None:
    files = StudyFiles(config["study"])
    base = files.results.folder
    for path in (files.results.plan, *files.results.tables, files.results.overlap):
        found.add(str(path), path)
    for dataset in datasets(planned):
        for path in (files.audit(dataset), files.data_source(dataset)):
            found.add(str(path), path)
    for run in run_names(planned):
        found.add_folder(str(files.results.run(run)), files.results.run(run))
        for name in UNFINISHED:
            if (path := files.results.unfinished(run) / name).is_file():
                found.add(str(path), path)
    for path in map(str, (*graded(planned), *flips(planned))):
        if (base / path).is_file():  # else `not_there` says so, and why
            found.add(f"{base}/{path}", base / path)
    for path in map(str, rollout_grades(planned)):
        found.add(f"{base}/{path}", base / path)
    for path in map(str, completion_files(planned)) if completions else ():
        found.add(f"{base}/{path}", base / path)


def not_there(planned: dict[str, Any], folder: Path) -> list[str]:
    """What a study's scores lack: runs, grades and flip rates that are missing, unfinished or older than their run."""
    return list(dict.fromkeys(collect(planned, folder, unfinished=True).missing))


def own_modules(planned: dict[str, Any]) -> list[Path]:
    """The modules in the study's folder that its runs take estimators from (`module:attribute`), and what they import.

    The latter from their own folder, directly or not.

    Raises:
        StudyError: for one that is no Python.
    """
    found: set[Path] = set()
    for name in {run["estimator"] for run in planned["runs"] if ":" in run["estimator"]}:
        place = Path(*name.partition(":")[0].split("."))
        for path in filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py")):
            try:
                found |= with_neighbours(path, name)
            except ValueError as error:
                raise StudyError(str(error)) from None
    return sorted(found)


def run_names(planned: dict[str, Any]) -> list[str]:
    """The plan's runs, by name."""
    return list(planned["evaluations"])


def training_names(planned: dict[str, Any]) -> list[str]:
    """Those that are trainings."""
    return [name for name in run_names(planned) if name.split("/")[1] != UNTRAINED]


def datasets(planned: dict[str, Any]) -> list[str]:
    """Everything that is trained or evaluated on."""
    evaluated = {name for run in planned["runs"] for name in planned["benchmarks"][run["setting"]]}
    return sorted({run["dataset"] for run in planned["runs"]} | evaluated)


def graded(planned: dict[str, Any]) -> Iterator[Path]:
    """The grades below a study's results, under each protocol."""
    for run, benchmarks in planned["evaluations"].items():
        for benchmark in benchmarks:
            for protocol in planned["grading"]:
                yield RELATIVE.grades(run, benchmark, protocol)


def flips(planned: dict[str, Any]) -> Iterator[Path]:
    """The sign-flip rates."""
    return (RELATIVE.flips(run, spec["benchmark"]) for run, spec in planned["flips"].items())


def rollout_grades(planned: dict[str, Any]) -> Iterator[Path]:
    """The grades that sign-flip rates are of."""
    return (RELATIVE.rollout_grades(run, spec["benchmark"]) for run, spec in planned["flips"].items())


def completion_files(planned: dict[str, Any]) -> Iterator[Path]:
    """The text that was graded."""
    for run, benchmarks in planned["evaluations"].items():
        yield from (RELATIVE.completions(run, benchmark) for benchmark in benchmarks)
    yield from (RELATIVE.rollouts(run, spec["benchmark"]) for run, spec in planned["flips"].items())
