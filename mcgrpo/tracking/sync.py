"""One training's files into its MLflow run: called again and again while it runs, or once when all is over."""

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.launch.locks import lock_of
from mcgrpo.records import Run
from mcgrpo.study.paths import LOCK, ResultFiles
from mcgrpo.tracking import MACHINE, contents
from mcgrpo.tracking.series import told
from mcgrpo.tracking.store import Store

SERIES = {"metrics.jsonl": "loss", "system.jsonl": "system/cpu_utilization_percentage"}
"""Files of rows with a `step`, and a metric that every row has."""
SILENT_SECONDS = 60
"""A training writes more often than that: its `system.jsonl` has a row every ten seconds."""


@dataclass(frozen=True)
class Place:
    """Where a training's files are: in `unfinished` until it is finished, in `finished` from then on."""

    unfinished: Path
    finished: Path

    @property
    def folder(self) -> Path | None:
        """The one of the two that has a record; None where neither has, or has no more."""
        return next((path for path in (self.unfinished, self.finished) if (path / "run.json").is_file()), None)

    @property
    def alive(self) -> bool:
        """Whether a process works on the unfinished training.

        It holds a lock (see `mcgrpo.train.attempts.alone`). That this is free tells nothing of a training on another
        machine of a cluster, whose file system may keep locks to a machine, or have none: then its files tell.
        """
        try:
            with (self.unfinished / LOCK).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # NFS lets none but this on a file open for reading
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        except OSError:
            return self._heard_of()
        return not self._is_here() and self._heard_of()

    @property
    def results(self) -> Path:
        """The study's folder of results; of a training elsewhere, the folder that its own is in."""
        parents = self.finished.absolute().parents
        folder = parents[5] if len(parents) > 5 else parents[0]
        return folder if ResultFiles(folder).runs in parents else parents[0]

    def _is_here(self) -> bool:
        try:
            return (self.unfinished / MACHINE).read_text() == platform.node()
        except FileNotFoundError:
            return False

    def _heard_of(self) -> bool:
        """Whether any of its files has changed of late."""
        times = [0.0]
        for name in ("run.json", *SERIES):
            with suppress(FileNotFoundError):
                times.append((self.unfinished / name).stat().st_mtime)
        return time.time() - max(times) < SILENT_SECONDS


def alone(folder: Path) -> FileLock:
    """A lock that only one process of this machine holds for what it tells of a folder: two would tell it twice."""
    return lock_of(f"tracking {folder.resolve()}")


def telling(results: Path) -> FileLock:
    """The lock under which a study is told to a store, by its follower or by `mcgrpo track`."""
    return alone(results / "store")


def places(results: Path) -> dict[str, Place]:
    """Every training of a study that has left files, by its run's name."""
    found, files = {}, ResultFiles(results)
    for folder in (files.runs, files.trainings):
        for record in sorted(folder.glob("*/*/G*/*/seed*/run.json")):
            name = str(record.parent.relative_to(folder))
            found[name] = Place(files.unfinished(name), files.run(name))
    return found


class Rows:
    """The rows that a file has got since it was last asked; the file may be replaced by a shorter one meanwhile."""

    def __init__(self, path: Path):
        self.path, self.inode, self.offset = path, 0, 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Rows whose line has been written to its end."""
        try:
            with self.path.open("rb") as file:
                if (inode := os.fstat(file.fileno()).st_ino) != self.inode:
                    self.inode, self.offset = inode, 0
                file.seek(self.offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self.offset += len(line)
                    yield self._row(line)
        except FileNotFoundError:
            return

    def _row(self, line: bytes) -> dict[str, Any]:
        try:
            row = json.loads(line)
            row["step"] + 0
        except (ValueError, KeyError, TypeError):
            raise RecordError(f"{self.path}: not a row with a step: {line[:80]!r}") from None
        return row


class Training:
    """What the store knows of one training, so that it is told only what is new.

    Args:
        found: the MLflow runs of this run's name, where they have been looked up already.
    """

    def __init__(self, store: Store, place: Place, found: list[Any] | None = None):
        self.store, self.place, self.found = store, place, found
        self.run_id, self.started, self.status = "", -1, ""
        self.sent: dict[str, int] = {}
        self.rows: dict[str, Rows] = {}
        self.waiting: dict[str, list[dict[str, Any]]] = {}

    def update(self) -> str:
        """Tell the store what the files have by now; returns the training's status, empty before there is one.

        What a store that fails was not told is told it the next time.

        Raises:
            RecordError: for files that do not hold what they should.
        """
        folder, alive = self.place.folder, self.place.alive
        if folder is None:
            return self.status
        try:
            record = read_json(folder / "run.json")
        except RecordError:
            if self.place.folder == folder:
                raise
            return self.status  # it was moved meanwhile: the next call finds it
        outcome, new = _told(record, f"{folder}/run.json")
        if new.started != self.started:
            self._attach(new)
        end, _ = (self._send(folder / name) for name in SERIES)
        if self._moved(folder, outcome):
            return "RUNNING"  # rows may have gone before they were read: the next call reads them where they are
        status = contents.status_of(outcome, alive)
        if status != self.status:
            self._end(outcome, status, end)
            self.status = status
        return status

    def _moved(self, folder: Path, outcome: dict[str, Any]) -> bool:
        """Whether the files were on their way to the folder of the finished training while they were read."""
        place = self.place
        leaving = outcome["status"] == "finished" and (place.finished / "run.json").is_file()  # this is copied last
        return place.folder != folder or (folder == place.unfinished and leaving)

    def _attach(self, new: contents.Contents) -> None:
        """Go on with the MLflow run of this very training, or begin one in place of those of earlier ones."""
        found = self.store.find(contents.RUN, new.name) if self.found is None else self.found
        self.found = None
        same = [run for run in found if run.info.start_time == new.started]
        for run in found:
            if run not in same[:1]:
                self.store.client.delete_run(run.info.run_id)
        self.run_id = same[0].info.run_id if same else self.store.begin(new)
        self.status = same[0].info.status if same else "RUNNING"
        self.sent = {
            name: self.store.last_step(self.run_id, metric) if same and metric in same[0].data.metrics else -1
            for name, metric in SERIES.items()
        }
        self.rows, self.waiting, self.started = {}, {}, new.started

    def _send(self, path: Path) -> float | None:
        """Send a file's new rows; returns the time of its last one that was read, in seconds since the epoch."""
        name = path.name
        if name not in self.rows or self.rows[name].path != path:
            self.rows[name] = Rows(path)
        waiting = self.waiting.setdefault(name, [])
        last = None
        for row in self.rows[name].new():
            last = row.get("time")
            if row["step"] > max(self.sent[name], waiting[-1]["step"] if waiting else -1):
                waiting.append(told(row))
        self.store.log(self.run_id, waiting)
        self.sent[name] = waiting[-1]["step"] if waiting else self.sent[name]
        waiting.clear()
        return last

    def _end(self, outcome: dict[str, Any], status: str, end: float | None) -> None:
        if status == "RUNNING":
            self.store.client.update_run(self.run_id, status)
            return
        self.store.describe(self.run_id, {}, contents.ending(outcome))
        stamp = contents.milliseconds(end or self._last_time() or outcome["started"])
        self.store.client.set_terminated(self.run_id, status, stamp)

    def _last_time(self) -> float | None:
        """When the last step was, where no row is new."""
        folder = self.place.folder
        rows = list(Rows(folder / "metrics.jsonl").new()) if folder else []
        return rows[-1].get("time") if rows else None


def _told(record: dict[str, Any], where: str) -> tuple[dict[str, Any], contents.Contents]:
    """The outcome and the contents that a `run.json` has."""
    try:
        outcome = record.pop("outcome")
        contents.status_of(outcome, alive=True)
        return outcome, contents.contents_of(as_record(Run, record, where), outcome)
    except (KeyError, TypeError) as error:
        raise RecordError(f"{where}: of no training: {error!r}") from None


def of_one(error: Exception) -> bool:
    """Whether an error is of one training's files or of what they hold, and so no reason to leave the others."""
    return isinstance(error, RecordError | FileNotFoundError) or (
        getattr(error, "error_code", None) == "INVALID_PARAMETER_VALUE"  # MLflow's, of a value that it refuses
    )
