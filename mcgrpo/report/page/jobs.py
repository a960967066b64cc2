"""The state of trainings from their records: environment, times, and what is missing."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import pandas as pd

from mcgrpo.analyse.frames import accuracies
from mcgrpo.records import CELL, Outcome, Plan, Run, cell_name
from mcgrpo.report import wording
from mcgrpo.report.tables.frame import Table
from mcgrpo.study.paths import RECORD, ResultFiles
from mcgrpo.study.planned import trained_runs
from mcgrpo.study.trained import read_record

FINISHED = "finished"


@dataclass(frozen=True)
class Training:
    """One planned training: `state` is finished, failed, unfinished or not started; `outcome` is that of run.json."""

    run: Run
    state: str
    outcome: Outcome | None = None


def planned_trainings(plan: Plan, files: ResultFiles) -> list[Training]:
    """Every planned training, with the outcome in its run.json if it has one.

    Raises:
        RecordError: names an invalid run.json.
    """
    return [_training(files, run) for run in trained_runs(plan)]


def _training(files: ResultFiles, run: Run) -> Training:
    unfinished = {"running": "unfinished", FINISHED: "unfinished"}
    for folder, states in ((files.run(run.name), {}), (files.unfinished(run.name), unfinished)):
        path = folder / RECORD
        if path.is_file():
            _, outcome = read_record(path, sealed=not states)
            state = outcome.status if outcome else "unfinished"
            return Training(run, states.get(state, state), outcome)
    return Training(run, "not started")


def states(trainings: Iterable[Training]) -> str:
    """How many trainings are in each state: "40 finished, 1 failed, 7 not started"."""
    return ", ".join(f"{count} {state}" for state, count in Counter(each.state for each in trainings).most_common())


def commits(trainings: Iterable[Training]) -> list[tuple[str, int]]:
    """The commits of the trainings with the number of runs, the most frequent first."""
    return Counter(each.outcome.commit or "unknown" for each in trainings if each.outcome).most_common()


def ended(trainings: Iterable[Training]) -> str:
    """The day on which the last training ended, such as 21 November 2026, in UTC; empty if none has."""
    ends = [each.outcome.started + each.outcome.seconds for each in trainings if each.state == FINISHED]
    if not ends:
        return ""
    day = datetime.fromtimestamp(max(ends), UTC)
    return f"{day.day} {day:%B %Y}"


def environment(trainings: list[Training]) -> Table:
    """The environment of finished trainings: values by name, with the number of runs if there are several."""
    outcomes = [each.outcome for each in trainings if each.outcome and each.state == FINISHED]
    told = pd.DataFrame([vars(outcome) | outcome.versions for outcome in outcomes])
    packages = sorted({name for each in trainings if each.outcome for name in each.outcome.versions})
    names = [name for name in ("commit", "device", "gpus", "rollouts", *packages) if name in told]
    rows = [(name, _values(told[name].astype(str))) for name in names]
    rows += sorted({_model(each) for each in trainings if each.outcome and each.outcome.model})
    caption = f"Environment of {wording.count(len(told), 'finished training')}; -dirty: with uncommitted changes."
    return Table("environment", caption, pd.DataFrame(rows, columns=["Name", "Value"]), 0)


def _model(training: Training) -> tuple[str, str]:
    """The initial model: the hub's name and commit, or what else its `source.json` has; else its folder."""
    model = training.outcome.model
    source = model.source or {"folder": model.path}
    told = [*(f"{name} {value}" for name, value in source.items()), f"all files {model.sha256[:10]}"]
    return f"model {training.run.model}", ", ".join(told)


def _values(values: pd.Series) -> str:
    counts = values.value_counts()
    runs = "" if len(counts) == 1 else " ({})"
    return ", ".join(f"{value}{runs.format(wording.count(n, 'run'))}" for value, n in counts.items())


def missing(trainings: list[Training], summary: pd.DataFrame, flips: list[tuple[str, str]]) -> list[Table]:
    """What is not there: unfinished trainings, with the error if it is known, accuracies that lack seeds, sign flips.

    Args:
        flips: run and benchmark of those that have not been measured.
    """
    left = [each for each in trainings if each.state != FINISHED]
    runs = [(each.run.name, each.state, each.outcome.error.split("\n")[0] if each.outcome else "") for each in left]
    cells = pd.concat([accuracies(summary, role, variant=None) for role in ("in", "out")])
    short = cells[cells.seeds < cells.planned].drop_duplicates([*CELL, "benchmark"], keep="last")
    seeds = [(cell_name(row), row["benchmark"], f"{row['seeds']}/{row['planned']}") for row in short.to_dict("records")]
    not_run = f"{len(left)} of {len(trainings)} planned trainings are not finished."
    not_evaluated = "Cells in which planned seeds have not been evaluated."
    tables = [
        Table("missing", not_run, pd.DataFrame(runs, columns=["Run", "State", "Why"]), 0),
        Table("missing", not_evaluated, pd.DataFrame(seeds, columns=["Cell", "Benchmark", "Seeds"]), 0),
        Table(
            "missing", "Sign flips that have not been measured.", pd.DataFrame(flips, columns=["Run", "Benchmark"]), 0
        ),
    ]
    return [table for table in tables if len(table.frame)]
