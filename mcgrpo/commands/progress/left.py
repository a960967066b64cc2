"""How long a study will still take: from its own finished jobs of like kind, as many at a time as there were."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean

from mcgrpo.commands.forecast.times import LENGTH, Time, Times
from mcgrpo.commands.progress.jobs import TRAIN, Job
from mcgrpo.commands.progress.state import Standing
from mcgrpo.study.plan import Config

PAUSE_SECONDS = 300.0
"""Nothing having run for that long, jobs before it say nothing of how many run at a time now."""


IDLE_SECONDS = 60.0
"""Nothing is running if nothing shows that it runs, and nothing has ended for that long."""


@dataclass(frozen=True)
class Left:
    """What is left of a study.

    Args:
        seconds: until the last number is there; None where nothing runs, or nothing like it has been measured.
        unknown: jobs that are not part of the seconds, as nothing like them has been measured.
        at_once: jobs that ran side by side, on average.
        jobs: that are left, without those that failed.
    """

    seconds: float | None
    unknown: int
    at_once: float
    jobs: int


def left(config: Config, standing: Mapping[Job, Standing], now: float) -> Left:
    """What is left of a study, and for how long."""
    waits = {job: how for job, how in standing.items() if how.state in ("running", "waiting", "stopped")}
    known = _Measured(config, standing)
    found = {job: known.seconds(job, how) for job, how in waits.items()}
    work = [each for each in found.values() if each is not None]
    at_once = _at_once(standing.values(), now)
    lasts = max(sum(work) / at_once, *work) if work and at_once else None
    return Left(lasts if waits else 0.0, len(found) - len(work), at_once, len(waits))


class _Measured:
    """Seconds of jobs, by those that are done."""

    def __init__(self, config: Config, standing: Mapping[Job, Standing]):
        self.config, self.trainings = config, Times(config.get("gpus", 0))
        self.others: dict[tuple, list[float]] = defaultdict(list)
        for job, how in standing.items():
            if how.state == "done" and how.seconds is not None:
                self._add(job, how.seconds, how.steps)

    def _add(self, job: Job, seconds: float, steps: int | None) -> None:
        if job.rule != TRAIN:
            self.others[job.kind].append(seconds)
            return
        length = json.dumps([job.run.training.get(key) for key in LENGTH])
        time = Time(seconds, "measured", (job.run.method, job.run.variant), length, steps)
        self.trainings.add(job.run, time, self.config["models"][job.run.model])

    def seconds(self, job: Job, how: Standing) -> float | None:
        """Of a job that is not done, from now on; None where nothing like it is done."""
        if job.rule != TRAIN:
            return mean(self.others[job.kind]) if job.kind in self.others else None
        if how.pace is not None and how.steps:  # it has taken steps itself
            return how.pace * (how.steps - how.step)
        estimate = self.trainings.estimate(job.run, how.steps, self.config["models"][job.run.model])
        if estimate is None:
            return None
        return estimate.seconds * (1 - how.step / how.steps) if how.steps else estimate.seconds


def _at_once(standing: Iterable[Standing], now: float) -> float:
    """Jobs that ran side by side since the last pause, on average, over what lies between them; 0 where none runs."""
    spans = [(how.end - how.seconds, how.end) for how in standing if how.state == "done" and how.seconds is not None]
    spans += [(how.start, now) for how in standing if how.state == "running"]
    if max((end for _, end in spans), default=0.0) < now - IDLE_SECONDS:
        return 0.0
    begin, busy = now, 0.0
    for start, end in sorted(spans, key=lambda span: -span[1]):
        if end < begin - PAUSE_SECONDS:
            break
        begin, busy = min(begin, start), busy + min(end, now) - start
    return busy / (now - begin) if now > begin else 0.0
