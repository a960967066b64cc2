"""One training's files into its MLflow run: called again and again while it runs, or once when all is over."""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.attempts import LOCK
from mcgrpo.files import as_record, read_json
from mcgrpo.records import Run
from mcgrpo.tracking import contents
from mcgrpo.tracking.store import Store

SERIES = {"metrics.jsonl": "loss", "system.jsonl": "system/cpu_utilization_percentage"}
"""Files of rows with a `step`, and a metric that every row has."""


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
        """Whether a process of this machine holds the unfinished training's lock (see `mcgrpo.attempts.alone`)."""
        try:
            with (self.unfinished / LOCK).open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False


def alone(folder: Path) -> FileLock:
    """A lock that only one process of this machine holds for what it tells of a folder: two would tell it twice."""
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return FileLock(Path(tempfile.gettempdir(), f"mcgrpo-{os.getuid()}-tracking-{name}.lock"))


def telling(results: Path) -> FileLock:
    """The lock under which a study is told to a store, by its follower or by `mcgrpo track`."""
    return alone(results / "store")


def places(results: Path) -> dict[str, Place]:
    """Every training of a study that has left files, by its run's name."""
    found = {}
    for kind in ("runs", "unfinished"):
        for record in sorted((results / kind).glob("*/*/G*/*/seed*/run.json")):
            name = str(record.parent.relative_to(results / kind))
            found[name] = Place(results / "unfinished" / name, results / "runs" / name)
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
                    yield json.loads(line)
        except FileNotFoundError:
            return


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
        """
        folder, alive = self.place.folder, self.place.alive
        if folder is None:
            return self.status
        try:
            record = read_json(folder / "run.json")
        except ValueError:  # it was moved meanwhile: the next call finds it
            return self.status
        outcome = record.pop("outcome")
        new = contents.contents_of(as_record(Run, record, f"{folder}/run.json"), outcome)
        if new.started != self.started:
            self._attach(new)
        end, _ = (self._send(folder / name) for name in SERIES)
        status = contents.status_of(outcome, alive)
        if status != self.status:
            self._end(outcome, status, end)
            self.status = status
        return status

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
                waiting.append(row)
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
