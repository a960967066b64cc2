"""The jobs that make a study's numbers: of which files each consists, and how long it took.

As in `workflow/rules/train.smk` and `evaluate.smk`; of what makes the report of them, see `report`.
"""

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mcgrpo.records import Run
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config, evaluations, expand, figures, grading

TRAIN, GENERATE, GRADE, ROLLOUTS, GRADE_ROLLOUTS, SIGN_FLIPS = (
    "train", "generate", "grade", "rollouts", "grade_rollouts", "sign_flips",
)  # fmt: skip
TABLES = ("tables.tex", "claims.md", "report.html")


@dataclass(frozen=True, eq=False)
class Job:
    """One job of one rule.

    Args:
        run: that it is about.
        part: the benchmark; empty for a training.
        outputs: the files that are there when it is done.
        after: the job whose outputs it takes; None where that only makes the start model or the data.
    """

    rule: str
    run: Run
    part: str
    outputs: tuple[Path, ...]
    after: "Job | None" = None

    @cached_property
    def name(self) -> str:
        """What its log and its benchmark file are called."""
        return f"{self.run.name}/{self.part}" if self.part else self.run.name

    @cached_property
    def log(self) -> Path:
        """Where Snakemake says that its log is."""
        return StudyFiles(self.run.study).log(self.rule, self.name)

    @cached_property
    def timed(self) -> Path:
        """Where Snakemake writes how long it took."""
        return StudyFiles(self.run.study).results.benchmark(self.rule, self.name)

    @cached_property
    def kind(self) -> tuple[str, str, str]:
        """Jobs of one kind take about as long; for trainings see `mcgrpo.commands.forecast.times`."""
        return (self.rule, self.run.setting, self.part)


def jobs(config: Config) -> list[Job]:
    """All of a study's jobs that train, generate, grade or measure sign flips."""
    results = StudyFiles(config["study"]).results
    found, evaluated = [], evaluations(config)

    def add(rule: str, run: Run, part: str, outputs: tuple[Path, ...], after: Job | None) -> Job:
        found.append(Job(rule, run, part, outputs, after))
        return found[-1]

    for name, entry in expand(config).items():
        run, trained = entry.run, None
        if run.method != UNTRAINED:
            trained = add(TRAIN, run, "", (results.run(name) / "run.json",), None)
        for benchmark in evaluated[name]:
            drawn = add(GENERATE, run, benchmark, (results.completions(name, benchmark),), trained)
            grades = tuple(results.grades(name, benchmark, protocol) for protocol in grading(config))
            add(GRADE, run, benchmark, grades, drawn)
        last = trained
        if entry.flips:
            part = entry.flips["benchmark"]
            kinds = (ROLLOUTS, results.rollouts), (GRADE_ROLLOUTS, results.rollout_grades), (SIGN_FLIPS, results.flips)
            for rule, path in kinds:
                last = add(rule, run, part, (path(name, part),), last)
    return found


def report(config: Config) -> list[Path]:
    """What is made of a study's numbers at last: tables, verdicts, the page and the figures."""
    reports = Path(config["reports"])
    return [reports / name for name in TABLES] + [reports / f"figures/{name}.pdf" for name in figures(config)]


def seconds(timed: Path) -> float | None:
    """How long a job took, by its benchmark file; None where there is none, or none yet."""
    try:
        with timed.open(encoding="utf-8", newline="") as file:
            return float(next(csv.DictReader(file, delimiter="\t"))["s"])
    except (OSError, ValueError, KeyError, StopIteration):
        return None
