"""run.json: written and read in one place."""

from dataclasses import asdict
from pathlib import Path

from mcgrpo.files import RecordError, as_record, read_json, write_json
from mcgrpo.records import Outcome, Run


def write_record(path: Path, run: Run, outcome: Outcome) -> None:
    """Write a run.json."""
    write_json(path, {**asdict(run), "outcome": asdict(outcome)})


def read_record(path: Path) -> tuple[Run, Outcome | None]:
    """The run and its outcome, which one that has not begun does not have.

    Raises:
        RecordError: for a file that is missing or holds anything else.
    """
    record = read_json(path)
    outcome = record.pop("outcome", None)
    if not isinstance(outcome, dict | None):
        raise RecordError(f"{path}: outcome should be an object, not {outcome!r}")
    return as_record(Run, record, str(path)), as_record(Outcome, outcome, f"{path}: outcome") if outcome else None
