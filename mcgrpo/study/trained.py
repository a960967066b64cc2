"""run.json: written and read in one place."""

from dataclasses import asdict
from pathlib import Path
from shlex import quote

from mcgrpo.files import RecordError, as_record, read_json, write_json
from mcgrpo.records import Outcome, Run
from mcgrpo.sums import check_seal


def write_record(path: Path, run: Run, outcome: Outcome) -> None:
    """Write a run.json."""
    write_json(path, {**asdict(run), "outcome": asdict(outcome)})


def read_record(path: Path, sealed: bool = True) -> tuple[Run, Outcome | None]:
    """The run and its outcome, which one that has not begun does not have.

    Args:
        path: the file.
        sealed: whether it is of a finished training, and has its seal.

    Raises:
        RecordError: for a file that is missing, has changed, lacks its seal or holds anything else.
    """
    if sealed:
        folder, name = quote(str(path.parent)), path.name
        accept = f"cd {folder} && sha256sum {name} > {name}.sha256"
        again = f"remove {folder}, and the run is trained again (if an earlier version wrote it: {accept})"
        check_seal(path, needed=True, remedy=again)
    record = read_json(path)
    outcome = record.pop("outcome", None)
    if not isinstance(outcome, dict | None):
        raise RecordError(f"{path}: outcome should be an object, not {outcome!r}")
    return as_record(Run, record, str(path)), as_record(Outcome, outcome, f"{path}: outcome") if outcome else None
