"""One training's files into its MLflow run: called again and again while it runs, or once when it has ended."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.launch.locks import lock_of
from mcgrpo.records import Run
from mcgrpo.study.paths import METRICS, RECORD, SYSTEM, ResultFiles
from mcgrpo.tracking import contents, warn
from mcgrpo.tracking.alive import is_alive, last_steps
from mcgrpo.tracking.series import selected
from mcgrpo.tracking.store import Store

SERIES = {METRICS: "loss", SYSTEM: "system/cpu_utilization_percentage"}
"""Files of rows with a `step`, and a metric that every row has."""


@dataclass(frozen=True)
class Place:
    """The folders of a training: `unfinished` while it runs, `finished` from then on."""

    unfinished: Path
    finished: Path

    @property
    def folder(self) -> Path | None:
        """The one of the two that has a record; None where neither has."""
        return next((path for path in (self.unfinished, self.finished) if (path / RECORD).is_file()), None)

    @property
    def alive(self) -> bool:
        """Whether a process works on the unfinished training."""
        return is_alive(self.unfinished)

    @property
    def results(self) -> Path:
        """The study's folder of results; for a training elsewhere, the folder that its own is in."""
        parents = self.finished.absolute().parents
        folder = parents[5] if len(parents) > 5 else parents[0]
        return folder if ResultFiles(folder).runs in parents else parents[0]


def places(results: Path) -> dict[str, Place]:
    """Every training of a study that has left files, by its run's name."""
    files = ResultFiles(results)
    names = (
        str(record.parent.relative_to(folder))
        for folder in (files.runs, files.trainings)
        for record in sorted(folder.glob(f"*/*/G*/*/seed*/{RECORD}"))
    )
    return {name: Place(files.unfinished(name), files.run(name)) for name in names}


def alone(folder: Path) -> FileLock:
    """The lock of the one process of this machine that logs from a folder."""
    return lock_of(f"tracking {folder.resolve()}")


def logging_lock(results: Path) -> FileLock:
    """The lock under which a study is logged, by its follower or by `mcgrpo track`."""
    return alone(results / "store")


class Skipped(set[str]):
    """The names of trainings that were skipped, each with one warning."""

    @contextmanager
    def on_error(self, name: str) -> Iterator[None]:
        """Skip a training whose own files, or values that MLflow refuses, are at fault; raise any other error."""
        try:
            yield
        except Exception as error:
            refused = getattr(error, "error_code", None) == "INVALID_PARAMETER_VALUE"
            if not isinstance(error, RecordError | FileNotFoundError) and not refused:
                raise
            if name not in self:
                warn(f"run {name}", error)
            self.add(name)


class Rows:
    """The rows added to a file since the last call; the file may be moved, or replaced by a shorter one."""

    def __init__(self) -> None:
        self.read: tuple[Path, int] | None = None
        self.offset = 0

    def new(self, path: Path) -> Iterator[dict[str, Any]]:
        """Rows whose line is complete."""
        with suppress(FileNotFoundError), path.open("rb") as file:
            if (which := (path, os.fstat(file.fileno()).st_ino)) != self.read:
                self.read, self.offset = which, 0
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self.offset += len(line)
                try:
                    row = json.loads(line)
                    row["step"] + 0
                except (ValueError, KeyError, TypeError):
                    raise RecordError(f"{path}: not a row with a step: {line[:80]!r}") from None
                yield row


class Training:
    """One training and its MLflow run. After an error make a new one, which looks up what has been logged.

    Args:
        runs: the MLflow runs of this run's name, where they have been looked up already.
    """

    def __init__(self, store: Store, place: Place, runs: list[Any] | None = None):
        self.store, self.place, self.runs = store, place, runs
        self.run_id, self.started, self.status = "", -1, ""
        self.sent: dict[str, float] = {}
        self.rows: dict[str, Rows] = {}

    def update(self) -> str:
        """Log what is new in the files; returns the training's status, empty before there is a record.

        Raises:
            RecordError: for files that do not hold what they should.
        """
        place = self.place
        folder, alive = place.folder, place.alive
        if folder is None:
            return self.status
        try:
            record = read_json(folder / RECORD)
        except RecordError:
            if place.folder == folder:
                raise
            return self.status  # moved meanwhile: the next call reads it
        outcome, new = _parsed(record, f"{folder / RECORD}")
        if new.started != self.started:
            self._attach(new)
        for name in SERIES:
            self._send(folder / name)
        # `run.json` is moved last. Rows that went before they were read are read at the next call, where they are.
        leaving = outcome["status"] == "finished" and (place.finished / RECORD).is_file()
        if place.folder != folder or (folder == place.unfinished and leaving):
            return "RUNNING"
        status = contents.status_of(outcome, alive)
        if status != self.status:
            self._set_status(status, outcome, folder)
        return status

    def _attach(self, new: contents.Contents) -> None:
        """Continue the MLflow run of this start, or begin one in place of those of earlier starts."""
        runs = self.store.find(contents.RUN, new.name) if self.runs is None else self.runs
        same = next((run for run in runs if run.info.start_time == new.started), None)
        for run in runs:
            if run is not same:
                self.store.client.delete_run(run.info.run_id)
        self.run_id = same.info.run_id if same else self.store.begin(new)
        self.status = same.info.status if same else "RUNNING"
        self.sent = {name: self._last_sent(metric, same) for name, metric in SERIES.items()}
        self.rows = {name: Rows() for name in SERIES}
        self.runs, self.started = None, new.started

    def _last_sent(self, metric: str, run: Any | None) -> float:
        """The last step of a metric in an MLflow run; infinite for one that has finished: its status is set last."""
        if self.status == "FINISHED":
            return math.inf
        return self.store.last_step(self.run_id, metric) if run and metric in run.data.metrics else -1

    def _send(self, path: Path) -> None:
        rows = []
        for row in self.rows[path.name].new(path):
            if row["step"] > self.sent[path.name]:
                self.sent[path.name] = row["step"]
                rows.append(selected(row))
        self.store.log(self.run_id, rows)

    def _set_status(self, status: str, outcome: dict[str, Any], folder: Path) -> None:
        if status == "RUNNING":
            self.store.client.update_run(self.run_id, status)
        else:
            self.store.describe(self.run_id, {}, contents.ending(outcome))
            steps = last_steps(folder)
            stamp = contents.milliseconds(steps[-1][1] if steps else outcome["started"])
            self.store.client.set_terminated(self.run_id, status, stamp)
        self.status = status


def _parsed(record: dict[str, Any], where: str) -> tuple[dict[str, Any], contents.Contents]:
    """The outcome and the contents of a `run.json`."""
    try:
        outcome = record.pop("outcome")
        contents.status_of(outcome, alive=True)
        return outcome, contents.contents_of(as_record(Run, record, where), outcome)
    except (KeyError, TypeError) as error:
        raise RecordError(f"{where}: not the record of a training: {error!r}") from None
