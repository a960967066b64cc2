"""The tables of an unpacked archive, made again from its grades and metrics by the code that is installed.

No model, no hub, no Snakemake: the stages that the workflow's rules call, in their order. The paper's numbers and
claims are those that are installed.
"""

import contextlib
import io
from collections.abc import Callable
from typing import Any

from mcgrpo.analyse import comparisons, sign_flips, signals, summarise
from mcgrpo.analyse.collect import Results
from mcgrpo.analyse.records import CellSignal, CurvePoint
from mcgrpo.analyse.scored import write_scores
from mcgrpo.commands.evidence.contents import modules, reports
from mcgrpo.grade import completions as grade
from mcgrpo.records import Plan
from mcgrpo.report.claims import __main__ as claims
from mcgrpo.report.tables import __main__ as tables
from mcgrpo.study.paths import GROUPS, ResultFiles, StudyFiles
from mcgrpo.study.plan import Config, title
from mcgrpo.study.planned import trained_runs, write_plan
from mcgrpo.sums import write_table


def make_tables(config: Config, planned: Plan, collected: Results, there: StudyFiles, made: StudyFiles):
    """Plan, flips, scores, summary, comparisons, signals, tables and claims.

    Args:
        config: the study.
        planned: its plan.
        collected: what its grades, flip rates and metrics amount to.
        there: the files of the archive.
        made: where what is made again is written.
    """
    ours, folder = made.results, made.root / reports(config)
    write_plan(ours.plan, planned)
    for run, spec in planned.flips.items():
        benchmark, sizes = spec.benchmark, spec.subset_sizes
        if (grades := there.results.rollout_grades(run, benchmark)).is_file():
            _call(sign_flips.main, "--grades", grades, "--k", *sizes, "--output", ours.flips(run, benchmark))
    write_scores(ours.scores, collected.scores)
    write_table(ours.curves, CurvePoint, collected.curves)
    for stage in (summarise, comparisons):
        _call(stage.main, "--results", ours.folder)
    if modules(planned):  # a user's code, which is not run: without signals
        write_table(ours.signals, CellSignal, [])
    else:
        lend(planned, there.results, ours)
        _call(signals.main, "--results", ours.folder)
    for stage in (tables, claims):
        _call(stage.main, "--results", ours.folder, "--output", folder, "--title", title(config))


def lend(planned: Plan, theirs: ResultFiles, ours: ResultFiles) -> None:
    """Link what signals are computed from, beside what is made again: grades of many rollouts, and groups."""
    grades = [(run, spec.benchmark) for run, spec in planned.flips.items()]
    paths = [(theirs.rollout_grades(*each), ours.rollout_grades(*each)) for each in grades]
    paths += [(theirs.run(run.name) / GROUPS, ours.run(run.name) / GROUPS) for run in trained_runs(planned)]
    for source, target in paths:
        if source.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source.resolve())


def make_grades(config: Config, planned: Plan, there: StudyFiles, made: StudyFiles) -> None:
    """Grades of all completions that are in the archive; arguments as of `make_tables`."""
    theirs, ours = there.results, made.results
    jobs = [
        (each, theirs.completions(run, each), ours.grades(run, each), planned.grading)
        for run, benchmarks in planned.evaluations.items()
        for each in benchmarks
    ]
    for run, spec in planned.flips.items():
        names = run, spec.benchmark
        jobs.append((spec.benchmark, theirs.rollouts(*names), ours.rollout_grades(*names), ["paper"]))
    for benchmark, completions, grades, protocols in jobs:
        task = config["datasets"][benchmark]["task"]
        if completions.is_file() and ":" not in task:  # a user's code, which is not run
            _call(grade.main, "--task", task, "--input", completions, "--output", grades, "--protocol", *protocols)


def _call(stage: Callable[[list[str]], None], *arguments: Any) -> None:
    """A stage with its command line, without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        stage([str(each) for each in arguments])
