"""run.json: written and read in one place."""

import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote

from mcgrpo.files import RecordError, as_record, read_json, write_json
from mcgrpo.records import Outcome, Run
from mcgrpo.study.paths import ERROR
from mcgrpo.sums import check_seal


def write_record(path: Path, run: Run, outcome: Outcome) -> None:
    """Write a run.json."""
    write_json(path, {**asdict(run), "outcome": asdict(outcome)})


def leave_error(folder: Path, error: str) -> None:
    """Leave the error of a process that is not the first beside run.json; that of the one which failed first is kept.

    The first one cannot always write it: waiting for the others in NCCL it does not react, until torchrun kills it.
    """
    own = folder / f"{ERROR}.{(rank := os.environ['RANK'])}"
    own.write_text(f"process {rank}: {error}")
    with suppress(FileExistsError):
        os.link(own, folder / ERROR)  # whole, or not at all
    own.unlink()


def with_error_left(folder: Path, outcome: Outcome) -> Outcome:
    """The outcome, failed with the error that a process has left in the folder of the training, if one has."""
    path = folder / ERROR
    return replace(outcome, status="failed", error=path.read_text()) if path.is_file() else outcome


def read_record(path: Path, sealed: bool = True) -> tuple[Run, Outcome | None]:
    """The run and its outcome, which one that has not begun does not have.

    Args:
        path: the file.
        sealed: whether it is of a finished training, and has its seal. One that seems to be running has failed if a
            process has left its error beside it.

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
    run, found = as_record(Run, record, str(path)), None
    if outcome:
        found = as_record(Outcome, outcome, f"{path}: outcome")
        found = with_error_left(path.parent, found) if found.status == "running" else found
    return run, found
