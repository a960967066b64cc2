"""How long a training takes: the mean over finished trainings of the same work, else the paper's printed times.

The paper's GPU-hours also stand for the same batches on another number of GPUs.

Two trainings are the same *work* if they share setting, model, data set, G, rollouts drawn, GPUs and hyper-parameters,
apart from those in `FREE`: methods, rewards and seeds may differ.
"""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean
from typing import Any, NamedTuple

from mcgrpo import shipped
from mcgrpo.files import RecordError, as_record, read_json
from mcgrpo.records import Run
from mcgrpo.study.estimators import drawn
from mcgrpo.study.paths import RECORD, StudyFiles
from mcgrpo.study.plan import Config, runs
from mcgrpo.study.read import read
from mcgrpo.study.variants import DEFAULT

FREE = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm", "epsilon", "epsilon_high",
    "advantage_epsilon", "mad_zero", "max_advantage", "advantage_flip_rate", "advantage_flip_rule", "group_by",
    "rescale_by_nonzero", "drop_rule", "count_dropped_tokens", "vllm_gpu_memory_utilization",
)  # fmt: skip
"""Hyper-parameters that change what is learnt, but not what a step costs (beyond the length of completions)."""
BATCH = ("per_device_train_batch_size", "gradient_accumulation_steps")


class Time(NamedTuple):
    """Seconds of a whole training, and their source: `measured` (under results/), `published` or `scaled`."""

    seconds: float
    source: str


def times(config: Config, trainings: Iterable[Run]) -> dict[str, Time]:
    """Work -> mean time, of the study's finished trainings and of the paper's."""
    trainings, gpus = list(trainings), config.get("gpus", 0)
    measured, published, scaled = defaultdict(list), defaultdict(list), defaultdict(list)
    gpu_seconds = defaultdict(list)
    for paper, run, seconds in _published(config):
        published[work(paper, run)].append(seconds)
        gpu_seconds[_same_batches(paper, run)].append(seconds * paper["gpus"])
    for run in trainings if gpus and gpu_seconds else ():
        scaled[work(config, run)] += [seconds / gpus for seconds in gpu_seconds.get(_same_batches(config, run), ())]
    for run, outcome in finished(config, trainings):
        measured[work(config, run)].append(outcome["seconds"])
    sources = {"scaled": scaled, "published": published, "measured": measured}  # the last one counts
    return {
        key: Time(mean(each), source) for source, by_work in sources.items() for key, each in by_work.items() if each
    }


def work(config: Config, run: Run, free: Sequence[str] = FREE, devices: int | None = None) -> str:
    """The work of a training: equal for two that take about as long.

    Args:
        free: hyper-parameters that do not count.
        devices: what stands for the number of GPUs; default: the study's `gpus`.
    """
    model = {key: value for key, value in config["models"][run.model].items() if key != "revision"}
    training = {key: value for key, value in run.training.items() if key not in free}
    training["beta"] = bool(training.get("beta"))
    devices = config.get("gpus", 0) if devices is None else devices
    return json.dumps(
        [run.setting, model, run.dataset, run.num_generations, drawn(run), devices, training], sort_keys=True
    )


def _same_batches(config: Config, run: Run) -> str:
    """Equal for two trainings whose optimizer steps have as many rows, on any number of GPUs."""
    rows = max(config.get("gpus", 0), 1) * math.prod(run.training.get(key, 1) for key in BATCH)
    return work(config, run, (*FREE, *BATCH), devices=rows)


def finished(config: Config, trainings: Iterable[Run]) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Trainings that finished with the present hyper-parameters, each with the `outcome` of its run.json."""
    for run in trainings:
        try:
            record = read_json(StudyFiles(config["study"]).results.run(run.name) / RECORD)
            outcome = record.pop("outcome", {})
            if outcome.get("status") == "finished" and as_record(Run, record, run.name) == run:
                yield run, outcome
        except RecordError:
            continue


def _published(config: Config) -> Iterator[tuple[Config, Run, float]]:
    """The paper's study, its runs, and their seconds; read without pandas, whose import takes longer than the rest."""
    with shipped.PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["measure"], row["variant"]) == ("seconds", DEFAULT)]
    printed = {(row["setting"], row["method"], int(row["num_generations"])): float(row["value"]) for row in rows}
    if not {setting for setting, *_ in printed} & config["settings"].keys():
        return
    paper = read([shipped.STUDY])
    for run in runs(paper):
        cell = (run.setting, run.method, run.num_generations)
        if cell in printed and (run.variant, run.seed) == (DEFAULT, 0):
            yield paper, run, printed[cell]
