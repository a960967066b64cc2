"""The jobs of a study before its report, and the files of each; as in `workflow/rules/train.smk` and `evaluate.smk`."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mcgrpo.commands.plan.batches import batches
from mcgrpo.commands.plan.times import work
from mcgrpo.records import Run
from mcgrpo.study.estimators import drawn
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import RECORD, StudyFiles
from mcgrpo.study.plan import Config, evaluations, expand, figures, grading
from mcgrpo.study.settings import splits_of

TRAIN, GENERATE, GRADE, ROLLOUTS, GRADE_ROLLOUTS, SIGN_FLIPS = (
    "train", "generate", "grade", "rollouts", "grade_rollouts", "sign_flips",
)  # fmt: skip
STEP_ROWS = 24
"""What a training step costs beside its rollouts, in rollouts (as measured with the mini study's models)."""
TABLES = ("tables.tex", "claims.md", "report.html")


@dataclass(frozen=True, eq=False)
class Job:
    """A job of Snakemake.

    Args:
        rule: its rule.
        run: the run that it belongs to.
        benchmark: empty for a training.
        outputs: the files that exist once it is done.
        kind: jobs of the same kind take about as long.
        after: the job whose output is its input, if that is a job of the run.
        size: jobs of a rule take about as long as they are large.
    """

    rule: str
    run: Run
    benchmark: str
    outputs: tuple[Path, ...]
    kind: tuple[str, ...]
    after: "Job | None" = None
    size: float = 1.0

    @cached_property
    def name(self) -> str:
        """Name of its log and of its benchmark file."""
        return f"{self.run.name}/{self.benchmark}" if self.benchmark else self.run.name

    @cached_property
    def log(self) -> Path:
        """Snakemake's `log` of the job."""
        return StudyFiles(self.run.study).log(self.rule, self.name)

    @cached_property
    def timed(self) -> Path:
        """Snakemake's `benchmark` of the job."""
        return StudyFiles(self.run.study).results.benchmark(self.rule, self.name)


def jobs(config: Config) -> Iterator[Job]:
    """The study's jobs that train, generate, grade or measure sign flips; each after its `after`."""
    files, evaluated = StudyFiles(config["study"]).results, evaluations(config)
    for name, entry in expand(config).items():
        run, trained = entry.run, None
        if run.method != UNTRAINED:
            record = files.run(name) / RECORD
            yield (trained := Job(TRAIN, run, "", (record,), (TRAIN, work(config, run)), size=_size(config, run)))
        chains = [(benchmark, _evaluation(config, files, name, benchmark)) for benchmark in evaluated[name]]
        if entry.flips:
            benchmark = entry.flips["benchmark"]
            rules = {ROLLOUTS: files.rollouts, GRADE_ROLLOUTS: files.rollout_grades, SIGN_FLIPS: files.flips}
            chains.append((benchmark, {rule: (path(name, benchmark),) for rule, path in rules.items()}))
        for benchmark, outputs in chains:
            last = trained
            for rule, paths in outputs.items():
                yield (last := Job(rule, run, benchmark, paths, (rule, run.setting, benchmark), last))


def _size(config: Config, run: Run) -> float:
    """Rollouts that a training draws, and what its steps cost beside them."""
    splits = splits_of(config["datasets"][run.dataset])
    plan = batches(run, config.get("gpus", 0), splits.get("train", {}).get("rows"))
    rows = plan.processes * plan.rows * plan.accumulation * drawn(run) / run.num_generations
    return (plan.steps or 1) * (rows + STEP_ROWS)


def _evaluation(config: Config, files, name: str, benchmark: str) -> dict[str, tuple[Path, ...]]:
    grades = tuple(files.grades(name, benchmark, protocol) for protocol in grading(config))
    return {GENERATE: (files.completions(name, benchmark),), GRADE: grades}


def report(config: Config) -> list[Path]:
    """The files of the report: tables, claims, the page and the figures."""
    reports = Path(config["reports"])
    return [reports / name for name in TABLES] + [reports / f"figures/{name}.pdf" for name in figures(config)]


def seconds(timed: Path) -> float | None:
    """Seconds that a job took, by its benchmark file; None if it has none yet."""
    try:
        with timed.open(encoding="utf-8", newline="") as file:
            return float(next(csv.DictReader(file, delimiter="\t"))["s"])
    except (OSError, ValueError, KeyError, StopIteration):
        return None
