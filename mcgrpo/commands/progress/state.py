"""Where every job of a study stands, looked at again and again: only files that have changed are read twice."""

import fcntl
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Literal

from mcgrpo.commands.forecast.batches import batches
from mcgrpo.commands.forecast.times import finished
from mcgrpo.commands.progress.jobs import TRAIN, Job, jobs, report, seconds
from mcgrpo.files import RecordError, read_json
from mcgrpo.study.paths import LOCK, StudyFiles
from mcgrpo.study.plan import Config

State = Literal["done", "running", "stopped", "failed", "waiting"]
SILENCE_SECONDS = 90.0
"""How long a training on another machine may write nothing before it counts as stopped, if its steps are short."""
FAILURE = re.compile(rb"^(?:Traceback|[\w.]*(?:error|Error|Exception)\b.*:|Killed|Terminated)", re.MULTILINE)
LOG_SILENCE_SECONDS = 3600.0
"""The same for a job that does not train, of which only its log says that it has begun."""
INTERRUPTED = ("KeyboardInterrupt", "SystemExit")
LOG_END = 20_000  # bytes of a log that are looked at


@dataclass(frozen=True)
class Standing:
    """Where one job stands.

    Args:
        state: `stopped` has neither ended nor shows that it still runs. Jobs that do not train run as soon as they have
            a log, until there is an output, or an error in the log.
        end: when it was done, in seconds since the epoch; `written` is when its outputs were.
        seconds: that it took; None where that was not measured.
        start: of what runs.
        step: the last one that a training has taken, of `steps`; `pace` is the seconds that one takes of late.
        why: a failed training's error.
    """

    state: State
    end: float = 0.0
    written: float = 0.0
    seconds: float | None = None
    start: float = 0.0
    step: int = 0
    steps: int | None = None
    pace: float | None = None
    why: str = ""


WAITING = Standing("waiting")


@dataclass
class Study:
    """A study's jobs, and what is known of them from the last look."""

    config: Config
    jobs: list[Job] = field(init=False)
    known: dict[Path, tuple[Any, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.jobs, self.report = jobs(self.config), report(self.config)
        self.results = StudyFiles(self.config["study"]).results

    def look(self, now: float) -> dict[Job, Standing]:
        """Where every job stands now (seconds since the epoch)."""
        found: dict[Job, Standing] = {}
        anew: set[Job] = set()
        for job in self.jobs:  # each comes after the one whose outputs it takes
            done = self._done(job)
            if job.after in anew or (done and job.after and found[job.after].written > done.written):
                done = None  # completions that have merely been removed are not drawn again, and so not graded again
                anew.add(job)
            elif job.rule == TRAIN and not done:
                anew.add(job)
            found[job] = done or (self._training(job, now) if job.rule == TRAIN else self._other(job, now))
        return found

    def made(self) -> int:
        """How many parts of the report there are."""
        return sum(path.exists() for path in self.report)

    def _remembered(self, path: Path, stamp: Any, read: Any) -> Any:
        """What `read()` says of a file, called again only when the stamp is another one."""
        if path not in self.known or self.known[path][0] != stamp:
            self.known[path] = (stamp, read())
        return self.known[path][1]

    def _done(self, job: Job) -> Standing | None:
        stamps = [_changed(path) for path in job.outputs]
        if None in stamps:
            return None
        timed = _changed(job.timed)
        return self._remembered(job.outputs[0], (stamps, timed), lambda: _ending(job, max(stamps), timed, self.config))

    def _other(self, job: Job, now: float) -> Standing:
        if (stamp := _changed(job.log)) is None:
            return WAITING
        if (_changed(job.timed) or 0.0) >= stamp:  # it ended well, and its outputs have been removed since
            return WAITING
        if self._remembered(job.log, stamp, lambda: _complains(job.log)):
            return Standing("failed", start=stamp)
        return Standing("running" if now - stamp < LOG_SILENCE_SECONDS else "stopped", start=stamp)

    def _training(self, job: Job, now: float) -> Standing:
        folder = self.results.unfinished(job.name)
        try:
            record = read_json(folder / "run.json")
        except RecordError:
            return WAITING
        outcome = record.get("outcome", {})
        rows = list(_last_rows(folder / "metrics.jsonl"))
        pace = _pace(rows)
        how = {
            "start": _changed(folder / "run.json") or now,
            "step": rows[-1]["step"] if rows else 0,
            "steps": _steps(job, outcome, self.config),
            "pace": pace,
        }
        if outcome.get("status") == "failed":
            why = str(outcome.get("error", ""))
            return Standing("stopped" if why.startswith(INTERRUPTED) else "failed", why=why, **how)
        heard = max(_changed(folder / name) or 0.0 for name in ("run.json", "metrics.jsonl", "system.jsonl"))
        runs = _held(folder / LOCK) or now - heard < max(SILENCE_SECONDS, 5 * (pace or 0.0))
        return Standing("running" if runs else "stopped", **how)


def _changed(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _ending(job: Job, written: float, timed: float | None, config: Config) -> Standing | None:
    """How a job ended whose outputs are there; None for a training under other hyper-parameters than now."""
    took = seconds(job.timed)
    if job.rule == TRAIN:
        outcome = next((outcome for _, outcome in finished(config, [job.run])), None)
        if outcome is None:
            return None
        took = outcome["seconds"] if took is None else took
        return Standing(
            "done", timed or written, written, took, step=outcome.get("steps", 0), steps=outcome.get("steps")
        )
    return Standing("done", timed or written, written, took)


def _steps(job: Job, outcome: dict[str, Any], config: Config) -> int | None:
    rows = outcome.get("data", {}).get("rows")
    return batches(job.run, config.get("gpus", 0), rows).steps


def _last_rows(metrics: Path) -> Iterator[dict[str, Any]]:
    """The last rows of a training's metrics, those that are written to their end."""
    for line in _end_of(metrics).splitlines(keepends=True):
        if line.startswith(b'{"step"') and line.endswith(b"\n"):
            yield json.loads(line)


def _end_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_END))
            return file.read()
    except OSError:
        return b""


def _pace(rows: list[dict[str, Any]]) -> float | None:
    """Seconds from one step to the next of late, whatever a pause between two attempts took."""
    times = [row["time"] for row in rows]
    return median(later - earlier for earlier, later in pairwise(times)) if times[1:] else None


def _complains(log: Path) -> bool:
    return bool(FAILURE.search(_end_of(log)))


def _held(lock: Path) -> bool:
    """Whether a process of this machine holds a training's lock."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
