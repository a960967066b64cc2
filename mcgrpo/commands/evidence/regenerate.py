"""The tables of an unpacked archive, made again from its grades and metrics by the code that is installed.

No model, no hub, no Snakemake: the functions that the workflow's rules call, in their order. The paper's numbers and
claims are those that are installed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcgrpo import shipped
from mcgrpo.analyse import sign_flips, summarise
from mcgrpo.analyse.answer import questions
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.collect import collect
from mcgrpo.analyse.contrasts import contrasts
from mcgrpo.analyse.frames import read_frame, read_records
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import Cell, Contrast, CurvePoint, Gain
from mcgrpo.analyse.scored import planned_seeds, read_scores
from mcgrpo.commands.evidence.contents import reports
from mcgrpo.files import write_csv, write_json, write_jsonl
from mcgrpo.grade import completions as grade
from mcgrpo.report.answer import answer
from mcgrpo.report.claims.judge import rulings
from mcgrpo.report.claims.tables import write_rulings
from mcgrpo.report.tables.__main__ import write_tables
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config, as_json, title

Step = Callable[[Path, Config, dict[str, Any], Path], None]
"""(unpacked archive, study, its plan, folder for what is made): writes files under their names in the archive."""


def make_plan(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """plan.json, from the study."""
    write_json(StudyFiles(config["study"], output).results.plan, as_json(config))


def make_flips(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """Sign-flip rates, from the grades of many rollouts a prompt."""
    there, made = (StudyFiles(config["study"], root).results for root in (source, output))
    for run, spec in planned["flips"].items():
        grades = there.rollout_grades(run, spec["benchmark"])
        if grades.is_file():
            rewards = sign_flips.read_rewards(grades)
            rates = sign_flips.flip_rates(rewards, spec["subset_sizes"], spec["subsamples"], seed=0)
            write_jsonl(made.flips(run, spec["benchmark"]), rates)


def make_scores(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """scores.jsonl and curves.csv, from grades, flip rates and metrics; what is missing stays out."""
    made = StudyFiles(config["study"], output).results
    collected = collect(planned, StudyFiles(config["study"], source).results.folder, unfinished=True)
    write_jsonl(made.scores, collected.scores)
    write_csv(made.curves, CurvePoint, collected.curves)


def make_summary(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """summary.csv, gains.csv and contrasts.csv, from the scores made before."""
    made = StudyFiles(config["study"], output).results
    scores = read_scores(made.scores)
    summary = summarise.summarise(planned, scores, as_cells(read_published(shipped.PUBLISHED)))
    write_csv(made.summary, Cell, summary.cells)
    write_csv(made.gains, Gain, summary.gains)
    claims = [*read_claims(shipped.CLAIMS), *(question.claim for question in questions(planned))]
    rows = contrasts(claims, scores, planned_seeds(planned), margin=planned["equivalence_margin"])
    write_csv(made.contrasts, Contrast, rows)


def make_reports(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """Tables, values and claims, from the summary made before."""
    folder, called = output / reports(config), title(config)
    made = StudyFiles(config["study"], output).results
    found = answer(planned, read_records(made.contrasts, Contrast))
    write_tables(read_frame(made.summary, Cell), found, folder, called)
    write_rulings(rulings(made.contrasts), folder, called)


def make_grades(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """Grades, from the completions; those that are not in the archive are left out."""
    there, made = (StudyFiles(config["study"], root).results for root in (source, output))
    protocols = planned["grading"]
    jobs = [
        (there.completions(run, each), [made.grades(run, each, protocol) for protocol in protocols], each, protocols)
        for run, benchmarks in planned["evaluations"].items()
        for each in benchmarks
    ]
    for run, spec in planned["flips"].items():
        names = run, spec["benchmark"]
        jobs.append((there.rollouts(*names), [made.rollout_grades(*names)], spec["benchmark"], ["paper"]))
    for completions, grades, benchmark, protocols in jobs:
        if completions.is_file():
            task, outputs = config["datasets"][benchmark]["task"], map(str, grades)
            grade.main(["--task", task, "--input", str(completions), "--protocol", *protocols, "--output", *outputs])


STEPS: dict[str, Step] = {
    "plan": make_plan,
    "flips": make_flips,
    "scores": make_scores,
    "summary": make_summary,
    "tables": make_reports,
}
