"""The forecast of a study, experiment by experiment: every run counts once, in the first that asks for it."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcgrpo.commands.forecast import space
from mcgrpo.commands.forecast.batches import batches
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.commands.forecast.times import Estimate, finished, times
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, Planned, planned

SOURCES = ("measured", "published", "like measured", "like published", "unknown")


@dataclass(frozen=True)
class Job:
    """One run that is still to be done: what is not known is None; an untrained model takes no steps."""

    name: str
    steps: int | None
    time: Estimate | None
    disk: int | None
    trained: bool = True


@dataclass(frozen=True)
class Row:
    """One experiment.

    Args:
        trainings: that it asks for.
        shared: of them, asked for by an experiment before it.
        finished: of the others, done already.
        jobs: the rest, and the untrained models that no experiment before it has.
    """

    experiment: str
    trainings: int
    shared: int
    finished: int
    jobs: Sequence[Job] = ()

    @property
    def to_train(self) -> list[Job]:
        """The jobs that are trainings."""
        return [job for job in self.jobs if job.trained]

    @property
    def steps(self) -> int | None:
        """Optimizer steps to take; None where those of one are not known."""
        return _sum(job.steps for job in self.jobs)

    @property
    def seconds(self) -> float:
        """Of the trainings whose time is known."""
        return sum(job.time.seconds for job in self.to_train if job.time)

    @property
    def disk(self) -> int | None:
        """Bytes that stay; None where those of one are not known."""
        return _sum(job.disk for job in self.jobs)

    @property
    def sources(self) -> dict[str, int]:
        """How many trainings have their time from where."""
        found = Counter(job.time.source if job.time else "unknown" for job in self.to_train)
        return {source: found[source] for source in SOURCES if found[source]}


def _sum(values: Iterable[int | None]) -> int | None:
    values = list(values)
    return None if None in values else sum(values)


def rows(config: Config, sizes: Sizes) -> list[Row]:
    """A row for each experiment, in the study's order."""
    everything = planned(config)
    trainings = [entry.run for entry in everything.values() if entry.run.method != UNTRAINED]
    done = {run.name for run, _ in finished(config, trainings)}
    jobs = {job.name: job for job in _jobs(config, everything, sizes)}
    found, seen = [], set()
    for name, experiment in config["experiments"].items():
        own = planned({**config, "experiments": {name: experiment}}).keys()
        new, trained = own - seen, {each for each in own if jobs[each].trained}
        left = tuple(jobs[each] for each in sorted(new - done))
        found.append(Row(name, len(trained), len(trained & seen), len(new & done), left))
        seen |= own
    return found


def total(found: Sequence[Row]) -> Row:
    """The whole study, in which nothing is shared any more."""
    jobs = [job for row in found for job in row.jobs]
    trainings = sum(row.trainings - row.shared for row in found)
    return Row("total", trainings, 0, sum(row.finished for row in found), jobs)


def _jobs(config: Config, entries: dict[str, Planned], sizes: Sizes) -> Iterator[Job]:
    gpus = config.get("gpus", 0)
    known = times(config, [entry.run for entry in entries.values() if entry.run.method != UNTRAINED])
    for name, entry in entries.items():
        run = entry.run
        if run.method == UNTRAINED:
            yield Job(name, 0, None, space.texts(config, entry, 0, sizes), trained=False)
            continue
        steps = batches(run, gpus, sizes.rows[run.dataset].get("train")).steps
        time = known.estimate(run, steps, config["models"][run.model])
        yield Job(name, steps, time, space.kept(config, entry, steps, sizes))


def wall_seconds(found: Row, at_once: int) -> float:
    """Seconds until the trainings whose time is known have ended, `at_once` side by side, the longest first."""
    lanes = [0.0] * at_once
    for seconds in sorted((job.time.seconds for job in found.to_train if job.time), reverse=True):
        heapq.heapreplace(lanes, lanes[0] + seconds)
    return max(lanes)
