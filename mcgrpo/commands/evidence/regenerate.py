"""The tables of an unpacked archive, made again from its grades and metrics by the code that is installed.

No model, no hub, no Snakemake: the stages that the workflow's rules call, in their order. The paper's numbers and
claims are those that are installed.
"""

import contextlib
import io
from collections.abc import Callable
from typing import Any

from mcgrpo.analyse import contrasts, sign_flips, summarise
from mcgrpo.analyse.collect import Results
from mcgrpo.analyse.frames import read_frame, read_records
from mcgrpo.analyse.records import Cell, Contrast, CurvePoint
from mcgrpo.commands.evidence.contents import reports
from mcgrpo.files import write_csv, write_jsonl
from mcgrpo.grade import completions as grade
from mcgrpo.records import Plan
from mcgrpo.report.answer import answer
from mcgrpo.report.claims.judge import rulings
from mcgrpo.report.claims.tables import write_rulings
from mcgrpo.report.tables.__main__ import write_tables
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config, title
from mcgrpo.study.planned import write_plan


def make_tables(config: Config, planned: Plan, collected: Results, there: StudyFiles, made: StudyFiles):
    """Plan, flips, scores, summary, contrasts, tables and claims.

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
    write_jsonl(ours.scores, collected.scores)
    write_csv(ours.curves, CurvePoint, collected.curves)
    _call(summarise.main, "--results", ours.folder)
    _call(contrasts.main, "--results", ours.folder)
    found = answer(planned, read_records(ours.contrasts, Contrast))
    write_tables(read_frame(ours.summary, Cell), found, folder, title(config))
    write_rulings(rulings(ours.contrasts), folder, title(config))


def make_grades(config: Config, planned: Plan, there: StudyFiles, made: StudyFiles) -> None:
    """Grades of all completions that are in the archive; arguments as of `make_tables`."""
    theirs, ours, protocols = there.results, made.results, planned.grading
    jobs = [
        (each, theirs.completions(run, each), {protocol: ours.grades(run, each, protocol) for protocol in protocols})
        for run, benchmarks in planned.evaluations.items()
        for each in benchmarks
    ]
    for run, spec in planned.flips.items():
        names = run, spec.benchmark
        jobs.append((spec.benchmark, theirs.rollouts(*names), {"paper": ours.rollout_grades(*names)}))
    for benchmark, completions, grades in jobs:
        if completions.is_file():
            of = ["--task", config["datasets"][benchmark]["task"], "--input", completions]
            _call(grade.main, *of, "--protocol", *grades, "--output", *grades.values())


def _call(stage: Callable[[list[str]], None], *arguments: Any) -> None:
    """A stage with its command line, without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        stage([str(each) for each in arguments])
