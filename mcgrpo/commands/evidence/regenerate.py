"""The tables of an unpacked archive, made again from its grades and metrics by the code that is installed.

No model, no hub, no Snakemake: the functions that the workflow's rules call, in their order. The paper's numbers and
claims are those that are installed, too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcgrpo.analyse import sign_flips, summarise
from mcgrpo.analyse.claims import read_claims
from mcgrpo.analyse.collect import collect
from mcgrpo.analyse.contrasts import contrasts, of_printed
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.scored import found_scores, planned_seeds
from mcgrpo.commands.evidence.contents import CLAIMS, PUBLISHED, flips, reports, results
from mcgrpo.files import write_csv, write_json, write_jsonl
from mcgrpo.grade import completions as grade
from mcgrpo.records import PROTOCOL_SUFFIXES, Cell, Contrast, CurvePoint, Gain, Score
from mcgrpo.report.claims.judge import judge, read_contrasts, write_rulings
from mcgrpo.report.tables.write import write_tables
from mcgrpo.study.plan import Config, plan, title
from mcgrpo.study.read import ROOT

Step = Callable[[Path, Config, dict[str, Any], Path], None]
"""(unpacked archive, study, its plan, folder for what is made): writes files under their names in the archive."""


def make_plan(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """plan.json, from the study."""
    write_json(output / results(config) / "plan.json", plan(config))


def make_flips(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """Sign-flip rates, from the grades of many rollouts a prompt."""
    base = Path(results(config))
    for path, spec in zip(flips(planned), planned["flips"].values(), strict=True):
        grades = source / base / "rollout-grades" / path.relative_to("flips")
        if grades.is_file():
            rewards = sign_flips.read_rewards(grades)
            rates = sign_flips.flip_rates(rewards, spec["subset_sizes"], spec["subsamples"], seed=0)
            write_jsonl(output / base / path, rates)


def make_scores(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """scores.csv, values.jsonl and curves.csv, from grades, flip rates and metrics; what is missing stays out."""
    folder = output / results(config)
    found = collect(planned, source / results(config), unfinished=True)
    write_csv(folder / "scores.csv", Score, found.scores)
    write_jsonl(folder / "values.jsonl", found.values)
    write_csv(folder / "curves.csv", CurvePoint, found.curves)


def make_summary(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """summary.csv, gains.csv and contrasts.csv, from the scores made before."""
    folder = output / results(config)
    scores, values = read_frame(folder / "scores.csv", Score), summarise.read_values(folder / "values.jsonl")
    published = as_cells(read_published(ROOT / PUBLISHED))
    summary = summarise.summarise(planned, scores, values, published)
    write_csv(folder / "summary.csv", Cell, summary.cells)
    write_csv(folder / "gains.csv", Gain, summary.gains)
    again, seeds = summarise.read_values(folder / "values.jsonl"), planned_seeds(planned)
    found = contrasts(read_claims(ROOT / CLAIMS), found_scores(scores, again, seeds), seeds)
    write_csv(folder / "contrasts.csv", Contrast, found)


def make_reports(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """Tables, values and claims, from the summary made before."""
    folder, called = output / reports(config), title(config)
    summary = read_frame(output / results(config) / "summary.csv", Cell)
    write_tables(summary, read_frame(output / results(config) / "gains.csv", Gain), folder, called)
    claims, published = read_claims(ROOT / CLAIMS), as_cells(read_published(ROOT / PUBLISHED))
    contrasts = read_contrasts(output / results(config) / "contrasts.csv")
    rulings = [judge(claims, of_printed(claims, published), "published"), judge(claims, contrasts, "ours")]
    write_rulings(rulings, folder, called)


def make_grades(source: Path, config: Config, planned: dict[str, Any], output: Path) -> None:
    """Grades, from the completions; those that are not in the archive are left out."""
    base = Path(results(config))
    jobs = [
        (f"completions/{run}/{benchmark}", f"grades/{run}/{benchmark}", benchmark, planned["grading"])
        for run, benchmarks in planned["evaluations"].items()
        for benchmark in benchmarks
    ]
    for path, spec in zip(flips(planned), planned["flips"].values(), strict=True):
        name = path.relative_to("flips").with_suffix("")
        jobs.append((f"rollouts/{name}", f"rollout-grades/{name}", spec["benchmark"], ["paper"]))
    for completions, grades, benchmark, protocols in jobs:
        if (found := source / base / f"{completions}.jsonl").is_file():
            outputs = [str(output / base / f"{grades}{PROTOCOL_SUFFIXES[each]}.jsonl") for each in protocols]
            task = config["datasets"][benchmark]["task"]
            grade.main(["--task", task, "--input", str(found), "--protocol", *protocols, "--output", *outputs])


STEPS: dict[str, Step] = {
    "plan": make_plan,
    "flips": make_flips,
    "scores": make_scores,
    "summary": make_summary,
    "tables": make_reports,
}
