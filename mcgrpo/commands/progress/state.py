"""The status of every job of a study, read from its files; files that have not changed are read once."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcgrpo.commands.plan.batches import batches
from mcgrpo.commands.plan.times import finished
from mcgrpo.commands.progress.jobs import TRAIN, Job, jobs, report, seconds
from mcgrpo.files import RecordError, read_json, tail
from mcgrpo.study.paths import RECORD, StudyFiles
from mcgrpo.study.plan import Config
from mcgrpo.tracking.alive import is_alive, last_steps, pace
from mcgrpo.tracking.contents import status_of

LOG_SILENCE_SECONDS = 3600.0
"""A job that does not train, and whose log has not changed for so long, counts as stopped."""
FAILURE = re.compile(
    rb"^(?:Traceback|Killed|Terminated|[\w.]*(?:error|Error|Exception)\b.*:|python -m [\w.]+: error:|"
    rb"mcgrpo\.launch\.preload: .* was killed\b)",
    re.MULTILINE,
)
"""What the log of a job that has failed says: Python, the shell, `mcgrpo.command_line` or `mcgrpo.launch`."""
STATES = {"RUNNING": "running", "FINISHED": "running", "KILLED": "stopped", "FAILED": "failed"}
"""Of trainings in their unfinished folders; a finished one is about to leave it."""


@dataclass(frozen=True)
class Status:
    """The status of a job.

    Args:
        state: `stopped` jobs show no sign that they still run. A job that does not train runs from when it has a log
            until it has an output, or an error in the log.
        end: when it was done, in seconds since the epoch; `written` is when its last output was.
        seconds: that it took, if measured.
        start: when a running job, or a finished training, started.
        step: the last optimizer step of a training, of `steps`; `pace` is the seconds that a step takes of late.
        error: of a failed training.
    """

    state: Literal["done", "running", "stopped", "failed", "waiting"]
    end: float = 0.0
    written: float = 0.0
    seconds: float | None = None
    start: float = 0.0
    step: int = 0
    steps: int | None = None
    pace: float | None = None
    error: str = ""


class Study:
    """The jobs of a study, and what was last read of them."""

    def __init__(self, config: Config):
        self.config, self.jobs, self.report = config, list(jobs(config)), report(config)
        self._known: dict[Path, tuple[Any, Any]] = {}

    def read(self, now: float) -> dict[Job, Status]:
        """The status of every job; `now` is in seconds since the epoch."""
        statuses: dict[Job, Status] = {}
        outdated: set[Job] = set()  # completions that were only deleted are not in it: their grades are still good
        trained = 0.0
        for job in self.jobs:
            done = self._done(job)
            if not job.after:
                trained = done.start if done else 0.0  # as recorded: files of a copied study have any times
            if job.after in outdated or (done and done.written < trained and job.after):
                done = None
                outdated.add(job)
            elif job.rule == TRAIN and not done:
                outdated.add(job)
            statuses[job] = done or (
                self._training(job, now) if job.rule == TRAIN else self._logged(job.log, job.timed, now)
            )
        for job in reversed(self.jobs):
            before = job.after
            deleted = before and before.rule != TRAIN and statuses[before].state == "waiting"
            if deleted and statuses[job].state == "done":  # nothing needs its outputs any more
                statuses[before] = Status("done", statuses[job].end)
        return statuses

    def others(self, now: float) -> dict[str, Status]:
        """The running jobs of other rules (data, models, tables, figures ...) by name, from their logs."""
        files, rules = StudyFiles(self.config["study"]), {job.rule for job in self.jobs}
        running = {}
        for first in files.logs.glob("*"):
            for log in [first] if first.is_file() else first.rglob("*.log") if first.name not in rules else ():
                name = log.relative_to(files.logs).with_suffix("")
                how = self._logged(log, files.results.benchmark(*name.parts[:1], "/".join(name.parts[1:])), now)
                if how.state == "running":
                    running[" ".join(name.parts)] = how
        return running

    def _cached(self, path: Path, stamp: Any, read: Callable[[], Any]) -> Any:
        if path not in self._known or self._known[path][0] != stamp:
            self._known[path] = (stamp, read())
        return self._known[path][1]

    def _done(self, job: Job) -> Status | None:
        stamps = [_mtime(path) for path in job.outputs]
        if None in stamps:
            return None
        timed = _mtime(job.timed)
        return self._cached(job.outputs[0], (stamps, timed), lambda: _ended(job, max(stamps), timed, self.config))

    def _logged(self, log: Path, timed: Path, now: float) -> Status:
        """The status of a job without its outputs, from its log and its benchmark file."""
        start = _mtime(log)
        if start is None or (_mtime(timed) or 0.0) >= start:  # done, and its output was deleted since
            return Status("waiting")
        if self._cached(log, start, lambda: bool(FAILURE.search(tail(log)))):
            return Status("failed", start=start)
        return Status("running" if now - start < LOG_SILENCE_SECONDS else "stopped", start=start)

    def _training(self, job: Job, now: float) -> Status:
        folder = StudyFiles(self.config["study"]).results.unfinished(job.name)
        try:
            outcome = read_json(folder / RECORD).get("outcome", {})
        except RecordError:
            return Status("waiting")
        last = last_steps(folder)
        examples = outcome.get("data", {}).get("rows")
        how = {
            "start": _mtime(folder / RECORD) or now,
            "step": last[-1][0] if last else 0,
            "steps": batches(job.run, self.config.get("gpus", 0), examples).steps,
            "pace": pace(last),
        }
        status = status_of({"status": "running", **outcome}, is_alive(folder, now))
        return Status(STATES[status], error=outcome.get("error", ""), **how)


def _mtime(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _ended(job: Job, written: float, timed: float | None, config: Config) -> Status | None:
    """The status of a job that has its outputs; None for a training with other hyper-parameters than now."""
    took, start = seconds(job.timed), 0.0
    if job.rule == TRAIN:
        outcome = next((outcome for _, outcome in finished(config, [job.run])), None)
        if outcome is None:
            return None
        took, start = outcome["seconds"] if took is None else took, outcome["started"]
    return Status("done", timed or written, written, took, start)
