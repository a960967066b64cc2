"""How long a training takes: as others like it took here, or as the paper says that its own took.

A time counts for a run of the same *work*: the same setting, model, data set, G, rollouts drawn, GPUs and
hyper-parameters, apart from those that change the numbers only (`FREE`). Times are of whole trainings, scaled by their
optimizer steps where those differ. There is no other source: a run without one has no time.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, NamedTuple

from mcgrpo.commands.forecast.batches import drawn
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.records import Run
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config, runs
from mcgrpo.study.read import ROOT, read
from mcgrpo.study.variants import DEFAULT

PAPER, NUMBERS = ROOT / "config/config.yaml", ROOT / "config/published.csv"
LENGTH = ("max_steps", "num_train_epochs")
FREE = (
    *LENGTH, "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm", "epsilon",
    "epsilon_high", "advantage_epsilon", "mad_zero", "max_advantage", "advantage_flip_rate", "advantage_flip_rule",
    "group_by", "rescale_by_nonzero", "drop_rule", "count_dropped_tokens", "vllm_gpu_memory_utilization",
)  # fmt: skip
"""Hyper-parameters that change what is learnt, or how far, but not what a step costs (beyond the length of answers)."""


@dataclass(frozen=True)
class Time:
    """Seconds of one training, start to end.

    Args:
        source: `measured` (under `results`) or `published`.
        cell: method and variant of the run that took it.
        length: what says how many steps it had, see `LENGTH`.
        steps: optimizer steps, where they are known.
    """

    seconds: float
    source: str
    cell: tuple[str, str]
    length: str
    steps: int | None = None


class Estimate(NamedTuple):
    """Seconds of a training, and from where: `like ...` is a run of the same work with another method or variant."""

    seconds: float
    source: str


@dataclass
class Times:
    """All times that are known, by work."""

    gpus: int
    by_work: dict[str, list[Time]] = field(default_factory=lambda: defaultdict(list))

    def add(self, run: Run, time: Time, spec: Mapping[str, Any]) -> None:
        """Note a time of a run, whose model's entry is `spec`."""
        self.by_work[_work(run, self.gpus, spec)].append(time)

    def estimate(self, run: Run, steps: int | None, spec: Mapping[str, Any]) -> Estimate | None:
        """The mean of the times of the nearest runs: own cell first, then measured before published."""
        scaled = [(time, _scaled(time, run, steps)) for time in self.by_work.get(_work(run, self.gpus, spec), [])]
        for source in ("measured", "published", "like measured", "like published"):
            found = [seconds for time, seconds in scaled if seconds is not None and _is_from(source, time, run)]
            if found:
                return Estimate(mean(found), source)
        return None


def _is_from(source: str, time: Time, run: Run) -> bool:
    own = time.cell == (run.method, run.variant)
    return source.removeprefix("like ") == time.source and own == (not source.startswith("like "))


def _scaled(time: Time, run: Run, steps: int | None) -> float | None:
    if time.steps and steps:
        return time.seconds * steps / time.steps
    return time.seconds if time.length == _length(run) else None


def _length(run: Run) -> str:
    return json.dumps([run.training.get(key) for key in LENGTH])


def _work(run: Run, gpus: int, spec: Mapping[str, Any]) -> str:
    hardness = {key: value for key, value in run.training.items() if key not in FREE}
    hardness["beta"] = bool(hardness.get("beta"))
    source = {key: value for key, value in spec.items() if key != "revision"}
    place = [run.setting, source, run.dataset, run.num_generations, drawn(run), gpus, hardness]
    return json.dumps(place, sort_keys=True)


def times(config: Config, planned: Iterable[Run]) -> Times:
    """All times that the study's runs could be like."""
    found = Times(config.get("gpus", 0))
    for run, record in finished(config, planned):
        time = Time(record["seconds"], "measured", (run.method, run.variant), _length(run), record.get("steps"))
        found.add(run, time, config["models"][run.model])
    if PAPER.is_file():
        for run, seconds, spec in _published(config):
            found.add(run, Time(seconds, "published", (run.method, run.variant), _length(run)), spec)
    return found


def finished(config: Config, planned: Iterable[Run]) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Runs that have finished under the present study, with what run.json says of how they went.

    One that was trained under other hyper-parameters is not among them: it will train anew.
    """
    for run in planned:
        try:
            record = read_json(StudyFiles(config["study"]).results.run(run.name) / "run.json")
            outcome = record.pop("outcome", {})
            if outcome.get("status") == "finished" and as_record(Run, record, run.name) == run:
                yield run, outcome
        except RecordError:
            continue


def _published(config: Config) -> Iterator[tuple[Run, float, Mapping[str, Any]]]:
    """The paper's training times, each with the run of its own study that it belongs to.

    The paper trained on two GPUs, as its study says; times on another number are another work.
    """
    printed = _printed()
    if not {setting for setting, *_ in printed} & config["settings"].keys():
        return
    paper = read([PAPER])
    for run in runs(paper) if paper.get("gpus", 0) == config.get("gpus", 0) else ():
        seconds = printed.get((run.setting, run.method, run.num_generations))
        if seconds is not None and run.variant == DEFAULT and run.seed == paper["seeds"][0]:
            yield run, seconds, paper["models"][run.model]


def _printed() -> dict[tuple[str, str, int], float]:
    """(setting, method, G) -> seconds; without pandas, which takes longer to import than all the rest to run."""
    with NUMBERS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["measure"], row["variant"]) == ("seconds", DEFAULT)]
    return {(row["setting"], row["method"], int(row["num_generations"])): float(row["value"]) for row in rows}
