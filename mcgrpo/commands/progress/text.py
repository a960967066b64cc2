"""A study's progress in words: a block of lines for a screen, or one line for a log."""

import time
from collections.abc import Iterable, Mapping

from mcgrpo.commands.progress.jobs import GENERATE, GRADE, ROLLOUTS, SIGN_FLIPS, TRAIN, Job
from mcgrpo.commands.progress.left import Left
from mcgrpo.commands.progress.state import Standing

LISTED = 8
"""Jobs that are listed by name, of each state."""

Standings = Mapping[Job, Standing]


def block(study: str, standing: Standings, report: tuple[int, int], rest: Left, now: float) -> list[str]:
    """Lines: the counts of each kind, what runs or failed by name, the time left.

    Args:
        report: how many parts of it there are, of how many.
        now: in seconds since the epoch.
    """
    lines = [f"study {study}, {_clock(now)}"]
    for title, begins, ends in (("trainings", TRAIN, TRAIN), ("evaluations", GENERATE, GRADE)):
        lines.append(f"{title:12} {_counts(standing, begins, ends)}")
        lines += _listed(standing, {begins, ends}, now)
    if any(job.rule == SIGN_FLIPS for job in standing):
        lines.append(f"{'sign flips':12} {_counts(standing, ROLLOUTS, SIGN_FLIPS)}")
        lines += _listed(standing, {ROLLOUTS, SIGN_FLIPS}, now)
    lines.append(f"{'report':12} {report[0]} of {report[1]} parts" if not rest.jobs else f"{'report':12} comes last")
    return [*lines, _time_left(rest, now)] if rest.jobs else lines


def line(standing: Standings, report: tuple[int, int], rest: Left, now: float) -> str:
    """The same in one line, without the names of what has failed."""
    running = _in(standing, {TRAIN}, "running")
    names = [f"{job.name} {_how(job, standing[job], now)}" for job in running[:2]]
    shown = f" ({', '.join([*names, *(['...'] if len(running) > 2 else [])])})" if names else ""
    parts = [f"trainings {_counts(standing, TRAIN, TRAIN)}{shown}", f"evaluations {_counts(standing, GENERATE, GRADE)}"]
    if not rest.jobs:
        parts.append(f"report {report[0]} of {report[1]} parts")
    return f"{_clock(now)} {'; '.join(parts)}" + (f"; {_time_left(rest, now)}" if rest.jobs else "")


def _in(standing: Standings, rules: Iterable[str], state: str) -> list[Job]:
    return [job for job, how in standing.items() if job.rule in rules and how.state == state]


def _counts(standing: Standings, begins: str, ends: str) -> str:
    """ "37 of 159 done, 2 running": of what the last of several jobs ends."""
    total = sum(job.rule == ends for job in standing)
    parts = [f"{len(_in(standing, {ends}, 'done'))} of {total} done"]
    for state in ("running", "stopped", "failed"):
        if count := len(_in(standing, {begins, ends}, state)):
            parts.append(f"{count} {state}")
    return ", ".join(parts)


def _listed(standing: Standings, rules: set[str], now: float) -> list[str]:
    lines = []
    for state in ("running", "stopped", "failed"):
        found = _in(standing, rules, state)
        lines += [f"  {job.name}  {_how(job, standing[job], now)}" for job in found[:LISTED]]
        lines += [f"  ... and {len(found) - LISTED} more {state}"] if len(found) > LISTED else []
    return lines


def _how(job: Job, how: Standing, now: float) -> str:
    if job.rule != TRAIN:
        words = {"running": "begun", "stopped": "log silent since"}.get(how.state)
        return f"{words} {_clock(how.start, now)}" if words else f"failed: {job.log}"
    step = f"step {how.step} of {how.steps or 'unknown'}"
    ending = {"stopped": ", stopped", "failed": f", failed: {' '.join(how.why.split())[:200]} ({job.log})"}
    return step + ending.get(how.state, "")


def _time_left(rest: Left, now: float) -> str:
    if not rest.at_once:
        return f"{rest.jobs} jobs left, nothing is running"
    if rest.seconds is None:
        return f"{rest.jobs} jobs left; time left: unknown, nothing like them has been measured yet"
    if rest.unknown:
        known = f"{duration(rest.seconds)} for {rest.jobs - rest.unknown} of them"
        return f"{rest.jobs} jobs left: {known}, unknown for the others (nothing like them has been measured yet)"
    return f"{duration(rest.seconds)} left, done about {_clock(now + rest.seconds, now)}, then the report"


def duration(seconds: float) -> str:
    """A time in words, to the minute."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours else f"{minutes} min"


def _clock(moment: float, now: float | None = None) -> str:
    """The time of day, with the date where that is not today's."""
    then = time.localtime(moment)
    other_day = now is not None and time.localtime(now)[:3] != then[:3]
    return time.strftime("%a %d %b %H:%M" if other_day else "%H:%M", then)
