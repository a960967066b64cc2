"""The time that a study has left, from its own finished jobs of the same kind, or else of the same rule."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import linear_regression, mean

from mcgrpo.commands.progress.jobs import Job
from mcgrpo.commands.progress.state import Status

PAUSE_SECONDS = 300.0
"""After a pause of that length, the jobs before it do not count for how many run at a time."""
RECENT = 6
"""Jobs of a kind that count, the last ones: the machine may have been busier, or less so, before."""
OF_RULE = 60
"""Jobs of a rule that count for those of a kind that has not run yet, the last ones."""
IDLE_SECONDS = 60.0
"""Nothing is running if no job shows that it runs and none has ended for so long."""


@dataclass(frozen=True)
class Left:
    """What a study has left.

    Args:
        seconds: until the last of the jobs whose time is known; None if none is, or if nothing runs.
        unknown: jobs of no known time.
        at_once: average number of jobs that ran at the same time.
        jobs: jobs left, without those that failed.
    """

    seconds: float | None
    unknown: int
    at_once: float
    jobs: int


def left(statuses: Mapping[Job, Status], now: float, others: Sequence[Status] = ()) -> Left:
    """The time left of the jobs that are not done: their work, shared among as many at a time as before.

    Args:
        others: the jobs that run and are not among these.
    """
    measured, of_rule = defaultdict(list), defaultdict(list)
    for job, status in sorted(statuses.items(), key=lambda item: item[1].end):
        if status.state == "done" and status.seconds is not None:
            measured[job.kind].append(status.seconds)
            of_rule[job.rule].append((status.seconds, job.size))
    remaining = {job: status for job, status in statuses.items() if status.state not in ("done", "failed")}
    whole = {
        job: mean(measured[job.kind][-RECENT:]) if job.kind in measured else _expected(of_rule[job.rule], job.size)
        for job in remaining
        if job.rule in of_rule
    }
    work = [seconds for job, how in remaining.items() if (seconds := _seconds(how, whole.get(job))) is not None]
    at_once = _at_once([*statuses.values(), *others], now)
    seconds = max(sum(work) / at_once, *work) if work and at_once else None
    return Left(seconds, len(remaining) - len(work), at_once, len(remaining))


def _expected(done: Sequence[tuple[float, float]], size: float) -> float:
    """The seconds of a job by its size, from (seconds, size) of its rule: on a line, or else in proportion."""
    seconds, sizes = zip(*done[-OF_RULE:], strict=True)
    if len(set(sizes)) > 1:
        line = linear_regression(sizes, seconds)
        if min(line) >= 0:
            return line.intercept + line.slope * size
    return size * sum(seconds) / sum(sizes)


def _seconds(status: Status, whole: float | None) -> float | None:
    """Seconds that a job has left: at its own pace, or else its share of what it takes as a whole."""
    if status.steps and status.pace is not None:
        return status.pace * (status.steps - status.step)
    return None if whole is None else whole * (1 - status.step / (status.steps or 1))


def _at_once(statuses: Iterable[Status], now: float) -> float:
    """Average number of jobs that ran at the same time since the last pause; 0 if nothing runs."""
    spans = [(how.end - how.seconds, how.end) for how in statuses if how.state == "done" and how.seconds is not None]
    spans += [(how.start, now) for how in statuses if how.state == "running"]
    if max((end for _, end in spans), default=0.0) < now - IDLE_SECONDS:
        return 0.0
    begin, busy = now, 0.0
    for start, end in sorted(spans, key=lambda span: -span[1]):
        if end < begin - PAUSE_SECONDS:
            break
        begin, busy = min(begin, start), busy + min(end, now) - start
    return busy / (now - begin) if now > begin else 0.0
