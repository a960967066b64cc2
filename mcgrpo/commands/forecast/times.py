"""How long a training takes: the mean over finished trainings of the same work, else the paper's printed times.

Two trainings are the same *work* if they share setting, model, data set, G, rollouts drawn, GPUs and hyper-parameters,
apart from those in `FREE`: methods, rewards and seeds may differ.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from statistics import mean
from typing import Any, NamedTuple

from mcgrpo import shipped
from mcgrpo.commands.forecast.batches import drawn
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.records import Run
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config, runs
from mcgrpo.study.read import read
from mcgrpo.study.variants import DEFAULT

FREE = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm", "epsilon", "epsilon_high",
    "advantage_epsilon", "mad_zero", "max_advantage", "advantage_flip_rate", "advantage_flip_rule", "group_by",
    "rescale_by_nonzero", "drop_rule", "count_dropped_tokens", "vllm_gpu_memory_utilization",
)  # fmt: skip
"""Hyper-parameters that change what is learnt, but not what a step costs (beyond the length of completions)."""


class Time(NamedTuple):
    """Seconds of a whole training, and their source: `measured` (under results/) or `published`."""

    seconds: float
    source: str


def times(config: Config, trainings: Iterable[Run]) -> dict[str, Time]:
    """Work -> mean time, of the study's finished trainings and of the paper's."""
    measured, published = defaultdict(list), defaultdict(list)
    for key, seconds in _published(config):
        published[key].append(seconds)
    for run, outcome in finished(config, trainings):
        measured[work(config, run)].append(outcome["seconds"])
    sources = {"published": published, "measured": measured}  # the last one counts
    return {key: Time(mean(each), source) for source, found in sources.items() for key, each in found.items()}


def work(config: Config, run: Run) -> str:
    """The work of a training: equal for two that take about as long."""
    model = {key: value for key, value in config["models"][run.model].items() if key != "revision"}
    training = {key: value for key, value in run.training.items() if key not in FREE}
    training["beta"] = bool(training.get("beta"))
    gpus = config.get("gpus", 0)
    return json.dumps(
        [run.setting, model, run.dataset, run.num_generations, drawn(run), gpus, training], sort_keys=True
    )


def finished(config: Config, trainings: Iterable[Run]) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Trainings that finished with the present hyper-parameters, each with the `outcome` of its run.json."""
    for run in trainings:
        try:
            record = read_json(StudyFiles(config["study"]).results.run(run.name) / "run.json")
            outcome = record.pop("outcome", {})
            if outcome.get("status") == "finished" and as_record(Run, record, run.name) == run:
                yield run, outcome
        except RecordError:
            continue


def _published(config: Config) -> Iterator[tuple[str, float]]:
    """The paper's training times in seconds, by work; read without pandas, whose import takes longer than the rest."""
    with shipped.PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["measure"], row["variant"]) == ("seconds", DEFAULT)]
    printed = {(row["setting"], row["method"], int(row["num_generations"])): float(row["value"]) for row in rows}
    if not {setting for setting, *_ in printed} & config["settings"].keys():
        return
    paper = read([shipped.STUDY])
    for run in runs(paper):
        cell = (run.setting, run.method, run.num_generations)
        if cell in printed and (run.variant, run.seed) == (DEFAULT, 0):
            yield work(paper, run), printed[cell]
