"""The files that a study plans, by their names in its archive."""

from collections.abc import Iterator
from typing import Any

from mcgrpo.commands.evidence.contents import (
    CLAIMS,
    PUBLISHED,
    REPORTS,
    STUDY,
    UNFINISHED,
    completion_files,
    datasets,
    flips,
    graded,
    reports,
    results,
    rollout_grades,
    run_names,
    training_names,
)
from mcgrpo.commands.evidence.rollouts import GROUPS, METRICS, ROLLOUTS
from mcgrpo.study.lock import lock_file
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config


def made_again(config: Config, planned: dict[str, Any], regrade: bool = False) -> Iterator[str]:
    """What `mcgrpo verify` makes again; with `regrade` all grades, too."""
    base = results(config)
    files = StudyFiles(config["study"]).results
    yield from map(str, (files.plan, *files.tables))
    yield from (f"{base}/{path}" for path in flips(planned))
    yield from (f"{reports(config)}/{name}" for name in REPORTS)
    if regrade:
        yield from (f"{base}/{path}" for path in (*graded(planned), *rollout_grades(planned)))


def required(config: Config, planned: dict[str, Any]) -> Iterator[str]:
    """What a study that is finished has."""
    yield from made_again(config, planned, regrade=True)
    files = StudyFiles(config["study"])
    yield str(files.results.overlap)
    for dataset in datasets(planned):
        yield from (str(files.audit(dataset)), str(files.data_source(dataset)))
    texts = [ROLLOUTS] if config.get("rollout_tables") else []
    for run in training_names(planned):
        yield from (str(files.results.run(run) / name) for name in ("run.json", METRICS, GROUPS, *texts))


class Known:
    """Whether a file belongs into a study's archive.

    Args:
        config: the study.
        planned: its plan.
        study_files: its files in the archive.
    """

    def __init__(self, config: Config, planned: dict[str, Any], study_files: list[str]):
        base, made = results(config), StudyFiles(config["study"]).results
        self.names = {STUDY, PUBLISHED, CLAIMS, *study_files, *(str(lock_file(name)) for name in study_files)}
        self.names |= {*required(config, planned), *(f"{base}/{path}" for path in completion_files(planned))}
        self.names |= {str(made.unfinished(run) / name) for run in run_names(planned) for name in UNFINISHED}
        self.runs = {str(made.run(run)) for run in run_names(planned)}
        self.has_modules = any(":" in run["estimator"] for run in planned["runs"])

    def __contains__(self, name: str) -> bool:
        parts = name.split("/")
        is_list = parts[0] == "envs" and len(parts) == 2 and name.endswith(".txt")
        is_module = self.has_modules and parts[0] == "study" and name.endswith(".py")
        return name in self.names or "/".join(parts[:8]) in self.runs or is_list or is_module
