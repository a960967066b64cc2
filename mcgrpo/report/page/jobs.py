"""The state of trainings from their records: environment, times, and what is missing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo.analyse.frames import accuracies
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.records import CELL, Run, cell_name
from mcgrpo.report import wording
from mcgrpo.report.tables.frame import Table
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


def environment(trainings: list[Training]) -> Table:
    """The environment of finished trainings: values by name, with the number of runs if there are several."""
    told = pd.DataFrame(
        [each.outcome | each.outcome.get("versions", {}) for each in trainings if each.state == FINISHED]
    )
    packages = sorted({name for each in trainings for name in each.outcome.get("versions", {})})
    names = [name for name in ("commit", "device", "gpus", "rollouts", *packages) if name in told]
    rows = [(name, _values(told[name].astype(str))) for name in names]
    rows += sorted({_model(each) for each in trainings if each.outcome.get("model")})
    caption = f"Environment of {wording.count(len(told), 'finished training')}; -dirty: with uncommitted changes."
    return Table("environment", caption, pd.DataFrame(rows, columns=["Name", "Value"]), 0)


def _model(training: Training) -> tuple[str, str]:
    """The initial model: the hub's name and commit, or what else its `source.json` has; else its folder."""
    model = training.outcome["model"]
    source = {"folder": model["path"]} if not model["source"] else model["source"]
    told = [*(f"{name} {value}" for name, value in source.items()), f"all files {model['sha256'][:10]}"]
    return f"model {training.run.model}", ", ".join(told)


def _values(values: pd.Series) -> str:
    counts = values.value_counts()
    runs = "" if len(counts) == 1 else " ({})"
    return ", ".join(f"{value}{runs.format(wording.count(n, 'run'))}" for value, n in counts.items())


def missing(trainings: list[Training], summary: pd.DataFrame) -> list[Table]:
    """What is not there: unfinished trainings, with the error if it is known, and accuracies that lack seeds."""
    left = [each for each in trainings if each.state != FINISHED]
    runs = [(each.run.name, each.state, str(each.outcome.get("error", "")).split("\n")[0]) for each in left]
    cells = pd.concat([accuracies(summary, role, variant=None) for role in ("in", "out")])
    short = cells[cells.seeds < cells.planned].drop_duplicates([*CELL, "benchmark"], keep="last")
    seeds = [(cell_name(row), row["benchmark"], f"{row['seeds']}/{row['planned']}") for row in short.to_dict("records")]
    not_run = f"{len(left)} of {len(trainings)} planned trainings are not finished."
    not_evaluated = "Cells in which planned seeds have not been evaluated."
    tables = [
        Table("missing", not_run, pd.DataFrame(runs, columns=["Run", "State", "Why"]), 0),
        Table("missing", not_evaluated, pd.DataFrame(seeds, columns=["Cell", "Benchmark", "Seeds"]), 0),
    ]
    return [table for table in tables if len(table.frame)]
