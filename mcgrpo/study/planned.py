"""plan.json: written and read in one place, and what it says of a run."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from mcgrpo.files import RecordError, as_record, read_json, write_json
from mcgrpo.records import Plan, Role, Run
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.sums import check_seal, seal


def write_plan(path: Path, plan: Plan) -> None:
    """Write plan.json, and its seal."""
    write_json(path, asdict(plan))
    seal(path)


def read_plan(path: Path) -> Plan:
    """Read plan.json.

    Raises:
        RecordError: for a file that is missing, has changed, has no seal or is no plan, or one that leaves out what it
            is to say of a run.
    """
    check_seal(path, needed=True)
    plan = as_record(Plan, read_json(path), str(path))
    names = {run.name for run in plan.runs}
    if odd := (names ^ plan.evaluations.keys()) | (plan.flips.keys() - names):
        raise RecordError(f"{path}: {min(odd)} does not stand under both runs and evaluations")
    return plan


def measured_on(plan: Plan, run: Run) -> Iterator[tuple[str, Role]]:
    """What a run is measured on: its benchmarks, the rollouts for sign flips, and its training; with their roles."""
    yield from plan.evaluations[run.name].items()
    if flips := plan.flips.get(run.name):
        yield flips.benchmark, "flips"
    if run.method != UNTRAINED:
        yield "train", "train"


def trained_runs(plan: Plan) -> list[Run]:
    """The runs that are trained."""
    return [run for run in plan.runs if run.method != UNTRAINED]
