"""Checks of what a study's trainings and evaluations have left: enough of it, and of one piece."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcgrpo.analyse.collect import finished
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Score
from mcgrpo.commands.evidence.advantages import is_known
from mcgrpo.commands.evidence.check import Check, judged
from mcgrpo.commands.evidence.rollouts import Recorded
from mcgrpo.files import RecordError, as_record, iter_json_lines, read_json
from mcgrpo.records import Run, run_name
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import GROUPS, RECORD, ROLLOUTS, StudyFiles
from mcgrpo.study.plan import Config
from mcgrpo.study.schedule import schedule
from mcgrpo.study.settings import splits_of
from mcgrpo.train.rollout_tables import RolloutTables


def check_rollouts(folder: Path, config: Config, planned: dict[str, Any], partial: bool) -> Check:
    """Every training has taken the steps that are planned; advantages, kept rows and metrics follow from its rewards.

    Estimators of somebody's own are code, and are not run: their trainings are named.
    """
    findings, own, count = [], [], 0
    for run in (as_record(Run, row, "plan") for row in planned["runs"] if row["method"] != UNTRAINED):
        of_run = StudyFiles(config["study"], folder).results.run(run.name)
        if not (of_run / RECORD).is_file() or (partial and not (of_run / GROUPS).is_file()):
            continue  # which `complete` names
        count += 1
        own += [] if is_known(run) else [f"{run.name}: not computed again: {run.estimator} is the study's own code"]
        try:
            lines = list(_disagreements(of_run, run, folder, config))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            lines = [f"cannot be read: {error}".replace(f"{of_run}/", "")]
        findings += [f"{run.name}: {line}" for line in lines]
    fine = f"{count} trainings: steps, advantages, kept rows and metrics are those of their rewards"
    check = judged("rollouts", fine, f"{len(findings)} disagreements", findings)
    return Check(check.topic, f"{count - len(own)} of {fine}", tuple(own), "note") if own and not findings else check


def _disagreements(of_run: Path, run: Run, folder: Path, config: Config) -> Iterator[str]:
    outcome = finished(of_run / RECORD, run)
    gpus, rows = config.get("gpus", 0), outcome["data"]["rows"]
    if outcome["gpus"] != gpus:
        yield f"run.json: trained on {outcome['gpus']} GPUs, the study plans {gpus}"
    if (audited := _audited(folder, config, run.dataset, "train")) is not None and rows != audited:
        yield f"run.json: {rows} rows of training data, {audited} in the audit of {run.dataset}"
    planned = schedule(run, max(gpus, 1), rows)
    if outcome["steps"] != planned.steps:
        yield f"run.json: {outcome['steps']} steps, the study plans {planned.steps}"
    if ROLLOUTS not in outcome.get("sums", {}) and (of_run / ROLLOUTS).exists():
        yield f"{ROLLOUTS}: not written by this training"
    tables = outcome.get("rollout_tables")  # of the training: those of the study may have been changed since
    yield from Recorded(of_run, run, planned, as_record(RolloutTables, tables, RECORD) if tables else None).check()


def check_problems(folder: Path, config: Config, planned: dict[str, Any], made: Path, partial: bool) -> Check:
    """Every score is over all problems of its benchmark, each with as many completions as planned.

    Args:
        folder: of the archive's files.
        config: the study.
        planned: its plan.
        made: what has been made again; the scores are.
        partial: whether scores may be missing.
    """
    scores = read_frame(StudyFiles(config["study"], made).results.scores, Score)
    names = [run_name(row) for row in scores.to_dict("records")]
    counted = dict(zip(zip(names, scores.benchmark, scores.measure, strict=True), scores.n, strict=True))
    findings = []
    for run, benchmarks in planned["evaluations"].items():
        for benchmark in benchmarks:
            rows = _audited(folder, config, benchmark, "test")
            for measure in planned["measures"]:
                n = counted.get((run, benchmark, measure))
                if n != rows and not (partial and None in (n, rows)):
                    findings.append(f"{run}: {measure} on {benchmark} is over {n} problems, of {rows}")
    for run, spec in planned["flips"].items():
        path = StudyFiles(config["study"], folder).results.rollout_grades(run, spec["benchmark"])
        findings += _too_few(path, run, spec, _audited(folder, config, spec["benchmark"], "test"))
    evaluations = sum(map(len, planned["evaluations"].values())) + len(planned["flips"])
    fine = f"all that their audits count, in {evaluations} evaluations"
    return judged("problems", fine, f"{len(findings)} scores over others than planned", findings)


def _too_few(path: Path, run: str, spec: dict[str, Any], rows: int | None) -> Iterator[str]:
    if path.is_file() and rows is not None:  # else `complete` names it
        wanted = min(spec["prompts"], rows) * spec["rollouts"]
        if (count := sum(1 for _ in iter_json_lines(path))) != wanted:
            yield f"{run}: sign-flip rates on {spec['benchmark']} are of {count} rollouts, not {wanted}"


def _audited(folder: Path, config: Config, dataset: str, split: str) -> int | None:
    """The rows of a split by its audit; None where there is none.

    Raises:
        RecordError: for others than the study asks for.
    """
    path = StudyFiles(config["study"], folder).audit(dataset)
    if not path.is_file():
        return None
    rows = read_json(path)["splits"][split]["rows"]
    spec = config["datasets"][dataset]
    wanted = splits_of(spec).get(split, {}).get("rows", rows)
    if not isinstance(rows, int) or rows > wanted or ("toy" in spec and rows != wanted):
        raise RecordError(f"{path}: {rows} rows of {split}, the study asks for {wanted}")
    return rows
