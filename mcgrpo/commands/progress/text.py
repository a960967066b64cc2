"""A study's progress in words."""

import time
from collections.abc import Mapping

from mcgrpo.commands.progress.jobs import GENERATE, GRADE, ROLLOUTS, SIGN_FLIPS, TRAIN, Job
from mcgrpo.commands.progress.left import Left
from mcgrpo.commands.progress.state import Status

LISTED = 8
"""Jobs that are listed by name, of each state."""
STAGES = {"trainings": (TRAIN, TRAIN), "evaluations": (GENERATE, GRADE), "sign flips": (ROLLOUTS, SIGN_FLIPS)}
"""The first and the last rule of each stage."""


def block(
    study: str, statuses: Mapping[Job, Status], report: str, rest: Left, now: float, others: Mapping[str, Status] = {}
) -> list[str]:
    """A line for each stage, the names of jobs that run or failed (indented), and the time left.

    Args:
        report: how much of it there is, in words.
        now: in seconds since the epoch.
        others: the running jobs of other rules, by name.
    """
    lines = [f"study {study}, {_clock(now)}"]
    for title, (first, last) in STAGES.items():
        total = [job for job in statuses if job.rule == last]
        if total:
            by_state = {"done": [job for job in total if statuses[job].state == "done"]}
            for state in ("running", "stopped", "failed"):
                by_state[state] = [
                    job for job in statuses if job.rule in (first, last) and statuses[job].state == state
                ]
            done = f"{len(by_state.pop('done'))} of {len(total)} done"
            counts = [done, *(f"{len(jobs)} {state}" for state, jobs in by_state.items() if jobs)]
            lines.append(f"{title:12} {', '.join(counts)}")
            for state, jobs in by_state.items():
                lines += [f"  {job.name}  {_details(job, statuses[job])}" for job in jobs[:LISTED]]
                lines += [f"  ... and {len(jobs) - LISTED} more {state}"] if len(jobs) > LISTED else []
    if others:
        running = [f"{name}, since {_clock(status.start)}" for name, status in sorted(others.items())]
        lines.append(f"{'other jobs':12} {len(others)} running: {'; '.join(running[:LISTED])}")
    if not rest.jobs:
        return [*lines, f"{'report':12} {report}"]
    return [*lines, f"{'report':12} comes last", _time_left(rest, now)]


def _details(job: Job, status: Status) -> str:
    if job.rule != TRAIN:
        since = _clock(status.start)
        words = {"running": f"since {since}", "stopped": f"log silent since {since}", "failed": f"failed: {job.log}"}
        return words[status.state]
    endings = {"stopped": ", stopped", "failed": f", failed: {' '.join(status.error.split())[:200]} ({job.log})"}
    return f"step {status.step} of {status.steps or 'unknown'}{endings.get(status.state, '')}"


def _time_left(rest: Left, now: float) -> str:
    left = f"{rest.jobs} jobs left"
    if not rest.at_once:
        return f"{left}, nothing is running"
    if rest.seconds is None:
        return f"{left}; time left: unknown until a job of each kind is done"
    if rest.unknown:
        return f"{left}: {duration(rest.seconds)} for {rest.jobs - rest.unknown} of them, unknown for the others"
    return f"{left}: {duration(rest.seconds)}, done about {_clock(now + rest.seconds, now)}, then the report"


def duration(seconds: float) -> str:
    """A time in words, to the minute."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min" if minutes else "less than a minute"


def _clock(moment: float, now: float | None = None) -> str:
    """The time of day, with the date if it is not today's."""
    then = time.localtime(moment)
    other_day = now is not None and time.localtime(now)[:3] != then[:3]
    return time.strftime("%a %d %b %H:%M" if other_day else "%H:%M", then)
