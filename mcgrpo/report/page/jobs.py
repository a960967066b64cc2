"""The state of runs from their records: environment, times, and what is missing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import accuracies
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.records import Run, cell_name
from mcgrpo.report import wording
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import RECORD, ResultFiles

FINISHED = "finished"


@dataclass(frozen=True)
class Training:
    """One planned training: `state` is finished, failed, unfinished or not started; `outcome` is that of run.json."""

    run: Run
    state: str
    outcome: dict[str, Any] = field(default_factory=dict)


def planned_trainings(results: Path) -> list[Training]:
    """Every planned training, with its run.json if it has one.

    Raises:
        RecordError: names a missing or invalid plan.json or run.json.
    """
    files = ResultFiles(results)
    runs = [as_record(Run, row, str(files.plan)) for row in read_json(files.plan)["runs"]]
    return [_training(files, run) for run in runs if run.method != UNTRAINED]


def _training(files: ResultFiles, run: Run) -> Training:
    unfinished = {"running": "unfinished", FINISHED: "unfinished"}
    for folder, states in ((files.run(run.name), {}), (files.unfinished(run.name), unfinished)):
        path = folder / RECORD
        if path.is_file():
            outcome = read_json(path).get("outcome", {})
            if not isinstance(outcome, dict):
                raise RecordError(f"{path}: outcome should be an object, not {outcome!r}")
            state = outcome.get("status", "unfinished")
            return Training(run, states.get(state, state), outcome)
    return Training(run, "not started")


def states(trainings: Iterable[Training]) -> str:
    """How many trainings are in each state: "40 finished, 1 failed, 7 not started"."""
    return ", ".join(f"{count} {state}" for state, count in Counter(each.state for each in trainings).most_common())


def commits(trainings: Iterable[Training]) -> list[tuple[str, int]]:
    """The commits of the trainings with the number of runs, the most frequent first."""
    return Counter(str(each.outcome.get("commit") or "unknown") for each in trainings if each.outcome).most_common()


def ended(trainings: Iterable[Training]) -> str:
    """The day on which the last training ended, such as 21 November 2026, in UTC; empty if none has."""
    ends = [each.outcome["started"] + each.outcome.get("seconds", 0) for each in trainings if "started" in each.outcome]
    if not ends:
        return ""
    day = datetime.fromtimestamp(max(ends), UTC)
    return f"{day.day} {day:%B %Y}"


def environment(trainings: list[Training]) -> list[tuple[str, str]]:
    """The environment of finished trainings: values by name, with the number of runs if there are several."""
    told = [each.outcome for each in trainings if each.state == FINISHED]
    packages = sorted({name for outcome in told for name in outcome.get("versions", {})})
    things = {
        "Commit": [outcome.get("commit") for outcome in told],
        "Device": [outcome.get("device") for outcome in told],
        "GPUs a training": [outcome.get("gpus") for outcome in told],
        "Rollouts drawn by": [outcome.get("rollouts") for outcome in told],
        **{name: [outcome.get("versions", {}).get(name) for outcome in told] for name in packages},
    }
    return [(name, _values(values)) for name, values in things.items() if any(value is not None for value in values)]


def _values(values: list[Any]) -> str:
    counts = Counter("none" if value is None else str(value) for value in values).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{value} ({wording.count(times, 'run')})" for value, times in counts)


def stages(results: Path) -> list[dict[str, Any]]:
    """The jobs of each rule, their total and longest `seconds`, from Snakemake's `benchmarks/`; the longest first."""
    folder = ResultFiles(results).benchmarks
    tables = [
        pd.read_csv(path, sep="\t", usecols=["s"]).assign(rule=path.relative_to(folder).parts[0].removesuffix(".tsv"))
        for path in sorted(folder.rglob("*.tsv"))
    ]
    if not tables:
        return []
    rules = pd.concat(tables).groupby("rule").s.agg(jobs="count", seconds="sum", longest="max").reset_index()
    return rules.sort_values("seconds", ascending=False).to_dict("records")


def missing_runs(trainings: list[Training]) -> list[tuple[str, str, str]]:
    """Unfinished trainings: name, state, and the error if it is known."""
    left = [each for each in trainings if each.state != FINISHED]
    return [(each.run.name, each.state, str(each.outcome.get("error", "")).split("\n")[0]) for each in left]


def missing_cells(summary: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Accuracies that lack seeds: the cell, its benchmark, and the seeds as "2/5"."""
    roles = [accuracies(summary, role, variant=None) for role in ("in", "out")]
    cells = pd.concat(roles)
    short = cells[cells.seeds < cells.planned]
    rows = {(cell_name(row._asdict()), row.benchmark): (row.seeds, row.planned) for row in short.itertuples()}
    return [(*key, f"{there}/{planned}") for key, (there, planned) in rows.items()]
