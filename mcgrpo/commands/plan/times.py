"""How long a training takes: the mean over finished trainings of the same work, else the paper's printed GPU-hours.

Two trainings are the same *work* if they share setting, model, data set, G, rollouts drawn, rows of an optimizer step
and hyper-parameters, apart from those in `FREE`: methods, rewards and seeds may differ. A training of a toy model on
a CPU that has neither takes about as long as those of the reference study did.
"""

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import mean
from typing import NamedTuple

from mcgrpo import shipped
from mcgrpo.analyse.published import read_published
from mcgrpo.files import RecordError
from mcgrpo.records import Run
from mcgrpo.study.context import completion_length
from mcgrpo.study.estimators import drawn
from mcgrpo.study.paths import RECORD, StudyFiles
from mcgrpo.study.plan import Config, runs
from mcgrpo.study.read import read
from mcgrpo.study.trained import read_record
from mcgrpo.study.variants import DEFAULT

FREE = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "max_grad_norm", "epsilon", "epsilon_high",
    "advantage_epsilon", "mad_zero", "max_advantage", "advantage_flip_rate", "advantage_flip_rule", "group_by",
    "rescale_by_nonzero", "drop_rule", "count_dropped_tokens", "vllm_gpu_memory_utilization",
)  # fmt: skip
"""Hyper-parameters that change what is learnt, but not what a step costs (beyond the length of completions)."""
SOURCES = ("hub", "revision", "folder")
"""Where a model comes from. Its sizes may be in `config`, which counts."""
BATCH = ("per_device_train_batch_size", "gradient_accumulation_steps")
TOY_MACHINE = "two cores of an AMD EPYC, one training on each"
TOY_SECONDS, TOY_TOKENS = 1.5, 28_000
"""Measured there in the reference study: seconds of a training beside its steps, and completion tokens a second."""
TOY_OTHERS = 0.4
"""Seconds of all other jobs, for a second of training: two thirds generate completions."""


class Time(NamedTuple):
    """Seconds of a whole training, and their source: `measured` (under results/), `published` or `toy`."""

    seconds: float
    source: str


def times(config: Config, done: Mapping[str, tuple[Run, float]]) -> dict[str, Time]:
    """Work -> mean time, of the study's finished trainings and of the paper's.

    Args:
        done: name -> run and seconds of each finished training.
    """
    published, measured = defaultdict(list), defaultdict(list)
    for paper, run, seconds in _published(config):
        published[work(paper, run)].append(seconds * paper["gpus"] / max(config.get("gpus", 0), 1))
    for run, seconds in done.values():
        measured[work(config, run)].append(seconds)
    found = {key: Time(mean(each), "published") for key, each in published.items()}
    return found | {key: Time(mean(each), "measured") for key, each in measured.items()}


def work(config: Config, run: Run) -> str:
    """The work of a training: equal for two that take about as many GPU-hours."""
    model = {key: value for key, value in config["models"][run.model].items() if key not in SOURCES}
    training = {key: value for key, value in run.training.items() if key not in (*FREE, *BATCH)}
    training["beta"] = bool(training.get("beta"))
    gpus, sizes = config.get("gpus", 0), (run.num_generations, drawn(run))
    batch = [gpus > 0, max(gpus, 1) * _rows(run)]
    return json.dumps([run.setting, model, run.dataset, *sizes, *batch, training], sort_keys=True)


def _rows(run: Run) -> int:
    """Of an optimizer step, on each GPU."""
    return math.prod(run.training.get(key, 1) for key in BATCH)


def toy_time(config: Config, run: Run, steps: int | None) -> Time | None:
    """Of a training of a toy model on a CPU; None for another."""
    if config.get("gpus") or "toy" not in config["models"][run.model] or steps is None:
        return None
    rollouts = steps * _rows(run) / run.num_generations * drawn(run)
    return Time(TOY_SECONDS + rollouts * completion_length(run.training) / TOY_TOKENS, "toy")


def finished_trainings(config: Config, trainings: Iterable[Run]) -> Iterator[tuple[Run, float]]:
    """Trainings that finished with the present hyper-parameters, each with its seconds."""
    files = StudyFiles(config["study"]).results
    for run in trainings:
        if not (path := files.run(run.name) / RECORD).is_file():
            continue
        try:
            found, outcome = read_record(path)
            if outcome and outcome.is_finished and found == run:
                yield run, outcome.seconds
        except RecordError as error:
            print(f"warning: not counted as finished: {error}", file=sys.stderr)


def _published(config: Config) -> Iterator[tuple[Config, Run, float]]:
    """The paper's study, its runs, and their seconds."""
    printed = {
        (row.setting, row.method, row.num_generations): row.value
        for row in read_published(shipped.PUBLISHED)
        if (row.measure, row.variant) == ("seconds", DEFAULT)
    }
    if not {setting for setting, *_ in printed} & config["settings"].keys():
        return
    paper = read([shipped.STUDY])
    for run in runs(paper):
        cell = (run.setting, run.method, run.num_generations)
        if cell in printed and (run.variant, run.seed) == (DEFAULT, 0):
            yield paper, run, printed[cell]
