"""The files that a study plans, by their names in an archive, and those of a study that lies here."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcgrpo import shipped
from mcgrpo.analyse.collect import collect
from mcgrpo.files import read_json
from mcgrpo.report.catalogue import CLAIMS, TABLES
from mcgrpo.study.check import StudyError
from mcgrpo.study.estimators import with_neighbours
from mcgrpo.study.fingerprint import ROOT
from mcgrpo.study.lock import lock_file
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import GROUPS, METRICS, RECORD, StudyFiles
from mcgrpo.study.plan import Config, as_json
from mcgrpo.study.read import made

STUDY = "study/study.json"
"""The study as it was run: its files merged, and pinned."""
OF_THE_PAPER = {"config/published.csv": shipped.PUBLISHED, "config/claims.yaml": shipped.CLAIMS}
"""The paper's numbers and claims, by their names in the archive."""
NO_FILE = ": no such file"
"""What follows the name of a file that is missing."""


def planned_files(config: Config, planned: dict[str, Any]) -> dict[str, str]:
    """The kind of every file that a study plans, by its name in the archive: its path in the study's own layout.

    `made` is made again by `verify`, `grades` with `--regrade` only; `data` and `training` are what these need, `text`
    is what was graded, `unfinished` is of trainings that failed.
    """
    files, tables = StudyFiles(config["study"]), reports(config)
    results = files.results
    evaluations = [(run, benchmark) for run, each in planned["evaluations"].items() for benchmark in each]
    flips = [(run, spec["benchmark"]) for run, spec in planned["flips"].items()]
    trainings = training_names(planned)
    kinds = {
        "made": [
            results.plan,
            *results.tables,
            *(results.flips(*each) for each in flips),
            *(tables / name for name in (*TABLES, *CLAIMS)),
        ],
        "grades": [results.grades(*each, protocol) for each in evaluations for protocol in planned["grading"]]
        + [results.rollout_grades(*each) for each in flips],
        "data": [results.overlap]
        + [path for name in datasets(planned) for path in (files.audit(name), files.data_source(name))],
        "training": [results.run(run) / name for run in trainings for name in (RECORD, METRICS, GROUPS)],
        "text": [results.completions(*each) for each in evaluations] + [results.rollouts(*each) for each in flips],
        "unfinished": [results.unfinished(run) / name for run in trainings for name in (RECORD, METRICS)],
    }
    return {str(path): kind for kind, paths in kinds.items() for path in paths}


def strangers(names: list[str], config: Config, planned: dict[str, Any], study_files: list[str]) -> list[str]:
    """Those of the names that no file of the study's archive has.

    Args:
        names: of files in the archive.
        config: the study.
        planned: its plan.
        study_files: its files in the archive.
    """
    known = {STUDY, *OF_THE_PAPER, *study_files, *(str(lock_file(name)) for name in study_files)}
    known |= planned_files(config, planned).keys()
    runs = {str(StudyFiles(config["study"]).results.run(run)) for run in planned["evaluations"]}
    has_modules = any(":" in run["estimator"] for run in planned["runs"])

    def is_known(name: str) -> bool:
        parts = name.split("/")
        is_list = parts[0] == "envs" and len(parts) == 2 and name.endswith(".txt")
        is_module = has_modules and parts[0] == "study" and name.endswith(".py")
        return name in known or "/".join(parts[:8]) in runs or is_list or is_module

    return [name for name in names if not is_known(name)]


@dataclass
class Contents:
    """Files by their name in the archive, the names of the study files in order, and what is planned but missing."""

    files: dict[str, Path] = field(default_factory=dict)
    study_files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, name: str, path: Path, is_needed: bool = True) -> None:
        """Add a file; name it as missing where it is needed and does not exist."""
        if path.is_file():
            self.files[name] = path
        elif is_needed:
            self.missing.append(f"{name}{NO_FILE}")


def contents(config: Config, layers: list[Path], planned: dict[str, Any], completions: bool = False) -> Contents:
    """Everything that a study's numbers come from.

    Args:
        config: the study.
        layers: its files, from the bottom up.
        planned: its plan.
        completions: whether to pack the text that was graded.
    """
    packed = Contents()
    for position, layer in enumerate(layers):
        packed.study_files.append(f"study/{position}-{layer.name}")
        packed.add(packed.study_files[-1], layer)
        packed.add(str(lock_file(packed.study_files[-1])), lock_file(layer), is_needed=False)
    for module in own_modules(planned):
        packed.add(f"study/{module}", module)
    locked = {f"envs/{path.name}": path for path in (ROOT / "envs").glob("*.txt")}  # of a checkout alone
    for name, path in (OF_THE_PAPER | locked).items():
        packed.add(name, path)
    for name, kind in planned_files(config, planned).items():
        if kind != "text" or completions:
            path = Path(config["reports"], Path(name).name) if Path(name).parent == reports(config) else Path(name)
            packed.add(name, path, kind not in ("training", "unfinished"))
    results = StudyFiles(config["study"]).results
    for run in planned["evaluations"]:
        for path in results.run(run).rglob("*"):
            if path.is_file() and not path.name.startswith("."):  # a hidden file is half-written
                packed.add(str(path), path)
    packed.missing = list(dict.fromkeys([*packed.missing, *not_there(planned, results.folder)]))
    return packed


def reports(config: Config) -> Path:
    """The folder of a study's tables in the archive."""
    return Path("reports", config["study"])


def checked_plan(config: Config) -> dict[str, Any]:
    """The plan that a study was run by.

    Raises:
        StudyError: where there is none, or it is not the plan of this study.
    """
    path = StudyFiles(config["study"]).results.plan
    plan, wanted = read_json(made(config, path)), json.loads(json.dumps(as_json(config)))
    odd = [key for key in {**wanted, **plan} if plan.get(key) != wanted.get(key)]
    if odd:
        raise StudyError(f"{path}: {odd[0]} differs from these study files; name those that it was run with")
    return plan


def not_there(planned: dict[str, Any], folder: Path) -> list[str]:
    """What a study's scores lack: runs, grades and flip rates that are missing, unfinished or older than their run."""
    return list(dict.fromkeys(collect(planned, folder, unfinished=True).missing))


def own_modules(planned: dict[str, Any]) -> list[Path]:
    """The modules in the study's folder that its runs take estimators from (`module:attribute`), and what they import.

    The latter from their own folder, directly or not.

    Raises:
        StudyError: for one that is no Python.
    """
    here, modules = Path.cwd(), set()
    for name in {run["estimator"] for run in planned["runs"] if ":" in run["estimator"]}:
        module = Path(*name.partition(":")[0].split("."))
        for path in filter(Path.is_file, (module.with_suffix(".py"), module / "__init__.py")):
            try:
                modules |= {each.absolute() for each in with_neighbours(path, name)}
            except ValueError as error:
                raise StudyError(str(error)) from None
    return sorted(each.relative_to(here) for each in modules if each.is_relative_to(here))


def training_names(planned: dict[str, Any]) -> list[str]:
    """The names of the plan's trainings."""
    return [name for name in planned["evaluations"] if name.split("/")[1] != UNTRAINED]


def datasets(planned: dict[str, Any]) -> list[str]:
    """Everything that is trained or evaluated on."""
    evaluated = {name for run in planned["runs"] for name in planned["benchmarks"][run["setting"]]}
    return sorted({run["dataset"] for run in planned["runs"]} | evaluated)
