"""The memory of a study's trainings (`mcgrpo.study.memory`): printed by `plan`, compared with this machine by `doctor`.

`doctor` does the same with their disk.
"""

import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from tabulate import tabulate

from mcgrpo.launch.gpus import gpus as gpus_here
from mcgrpo.launch.gpus import memory_of_gpus
from mcgrpo.records import Run, cell_name
from mcgrpo.study.memory import (
    DEFAULT_SHARE,
    GIB,
    PROMPT_TOKENS,
    Memory,
    Shape,
    disk,
    is_known,
    memory,
    parameters,
    row_tokens,
)
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.model_config import model_config
from mcgrpo.study.plan import Config, evaluated_at_a_time, runs

FULL = 0.92
"""Share of a card from which on it is near the edge: fragments are not computed, nor is what other programs take."""


class Largest(NamedTuple):
    """The training of a setting that takes most, and its memory; None for a model whose shape is not known."""

    run: Run
    memory: Memory | None
    tokens: int


def largest(config: Config) -> list[Largest]:
    """For each setting with trainings on GPUs, the one that needs the largest card, with the largest `host` of any."""
    found: dict[str, Largest] = {}
    hosts: dict[str, float] = defaultdict(float)
    for run, shape in trainings(config):
        taken = memory(run, config["gpus"], shape) if is_known(shape) else None
        hosts[run.setting] = max(hosts[run.setting], taken.host if taken else 0.0)
        other = found.get(run.setting)
        if not (other and other.memory and taken) or taken.smallest_card > other.memory.smallest_card:
            found[run.setting] = Largest(run, taken, row_tokens(run.training, shape))
    every = found.items()
    return [each._replace(memory=each.memory and replace(each.memory, host=hosts[name])) for name, each in every]


def trainings(config: Config) -> Iterator[tuple[Run, Shape]]:
    """Each training on GPUs, and the shape of its model."""
    shapes = {name: model_config(config, name) for name in config["models"]}
    everything = runs(config) if config.get("gpus") else ()
    yield from ((run, shapes[run.model]) for run in everything if run.method != UNTRAINED)


def listing(config: Config) -> Iterator[str]:
    """A table of each setting's largest training, in GiB a GPU; nothing for a study without GPUs."""
    rows, unknown = [], []
    for run, taken, tokens in largest(config):
        if taken is None:
            unknown.append(run.model)
            continue
        parts = (taken.weights, taken.optimizer, taken.reference, taken.working, taken.held + taken.working)
        sharding = run.training.get("sharding", "none")
        share = f"{taken.vllm:.0%}" if taken.vllm else "-"
        batch = f"{run.training['per_device_train_batch_size']} x {tokens:,}"
        last = (taken.smallest_card, taken.host)
        rows.append((run.setting, batch, sharding, *map(_gib, parts), share, *map(_gib, last)))
    if rows:
        headers = ["setting", "rows x tokens", "sharding", "weights", "AdamW", "reference", "working"]
        headers += ["training", "vLLM", "smallest card", "host"]
        yield "\nMemory of a training on each of its GPUs, GiB (the largest of each setting):"
        sides = ("left", "right", "left", *["right"] * 8)
        yield tabulate(rows, headers, "simple", disable_numparse=True, colalign=sides)
        yield (
            "computed from the model's shape; working: gradients, activations and gathered weights together, at most; "
            f"prompts of {PROMPT_TOKENS} tokens are assumed; vLLM: its share of the card; host: "
            "of the machine's own memory, when a training starts (docs/gpu.md)"
        )
    if unknown:
        names = ", ".join(sorted(set(unknown)))
        yield f"\nMemory: unknown for {names} (no sizes in models.NAME.config, and no config.json)"


def _gib(number: float) -> str:
    return f"{number / GIB:,.1f}"


def check_memory(config: Config) -> Iterator[tuple[str, str, str]]:
    """Status, finding and remedy for each setting with trainings on GPUs: whether the cards here hold its largest one.

    GPUs of different sizes are as good as the smallest.
    """
    sizes = memory_of_gpus()
    if not sizes:
        return
    card, gpus = min(sizes), config.get("gpus", 0)
    for run, taken, _ in largest(config):
        if taken is None:
            yield "warning", f"{run.setting}: {run.model}'s sizes are not known", "name them in the model's `config`"
            continue
        finding = f"{run.setting}: about {_gib(taken.total(card))} of {_gib(card)} GiB on each GPU"
        cell = _cell(run)
        if taken.smallest_card > card:
            yield "error", f"{finding} ({cell})", _remedy(config, run, gpus, card)
        elif taken.smallest_card > FULL * card:
            yield "warning", f"{finding}, near the edge ({cell})", _remedy(config, run, gpus, FULL * card)
        else:
            yield "ok", finding, ""


def warn(config: Config, settings: Container[str]) -> None:
    """Print which of these settings the cards here do not hold, before their trainings fail one by one."""
    for status, finding, remedy in check_memory(config) if config.get("gpus") else ():
        if status == "error" and finding.partition(":")[0] in settings:
            print(f"warning: {finding}: {remedy}", file=sys.stderr)


def check_host(config: Config) -> Iterator[tuple[str, str, str, str]]:
    """Status, topic, finding and remedy: whether this machine's own memory, and its disk, hold the trainings at a time.

    These are as many as have GPUs here, one at least (where jobs run elsewhere), each as large as the largest.
    """
    known = [(run, shape) for run, shape in trainings(config) if is_known(shape)]
    if not known:
        return
    gpus, is_saved = config["gpus"], bool(config.get("save_steps"))
    at_once = max(len(gpus_here()) // gpus, 1)
    each, run = max(((memory(one[0], gpus, one[1]).host, one[0]) for one in known), key=itemgetter(0))
    here = memory_of_machine()
    finding = f"host: {_together(at_once)} {_gib(at_once * each)} of {_gib(here)} GiB at the start ({_cell(run)})"
    yield _fits("memory", finding, each, here, at_once, gpus)
    models = evaluated_at_a_time(config)
    each, checkpoint, run = max(((*disk(*one, is_saved, models), one[0]) for one in known), key=itemgetter(0))
    here, kept = shutil.disk_usage(".").free, 4 * sum(parameters(shape) for _, shape in known)
    finding = f"{_together(at_once)} {_gb(at_once * each)} of {_gb(here)} GB that are free"
    finding += f" (a checkpoint: {_gb(checkpoint)}, {_cell(run)})" if checkpoint else f" ({_cell(run)})"
    if config.get("keep_models"):
        finding, here = f"{finding}, and all trained models {_gb(kept)}, which are kept", max(here - kept, 0)
    yield _fits("disk", finding, each, here, at_once, gpus)


def memory_of_machine() -> int:
    """Bytes: of the machine, or what a scheduler or container allows of it (cgroup 2)."""
    limit = Path("/sys/fs/cgroup/memory.max")
    allowed = limit.read_text().strip() if limit.is_file() else "max"
    return min(psutil.virtual_memory().total, int(allowed) if allowed.isdigit() else sys.maxsize)


def _fits(topic: str, finding: str, each: float, here: float, at_once: int, gpus: int) -> tuple[str, str, str, str]:
    number = int(here // each)
    if number >= at_once:
        return "ok", topic, finding, ""
    if number:
        return "warning", topic, finding, f"at most {number} at a time: `--resources gpu={number * gpus}`"
    more = {"memory": "a machine with more memory", "disk": "a larger disk"}[topic]
    return "error" if topic == "memory" else "warning", topic, finding, more


def _together(number: int) -> str:
    return "one training takes up to" if number == 1 else f"{number} trainings at a time take up to"


def _cell(run: Run) -> str:
    return cell_name(asdict(run))


def _gb(number: float) -> str:
    return f"{number / 1e9:,.1f}"


def _remedy(config: Config, run: Run, gpus: int, card: float) -> str:
    """The changes of the training with each of which, alone, a card of this size would hold it."""
    shape, fitting = model_config(config, run.model), []
    for changes in _changes(run, gpus):
        for change in changes:
            changed = replace(run, training=run.training | change)
            if memory(changed, change.get("gpus", gpus), shape).smallest_card <= card:
                fitting.append("`" + json.dumps(change)[1:-1].replace('"', "") + "`")
                break
    return " or ".join(fitting) or "a larger card, or more than one of: sharding, LoRA, more GPUs, smaller batches"


def _changes(run: Run, gpus: int) -> Iterator[list[dict[str, Any]]]:
    """Changes of `training` (and `gpus`) of one kind, of which the first that is enough counts.

    What changes the results least comes first.
    """
    training = run.training
    rows, steps = training["per_device_train_batch_size"], training.get("gradient_accumulation_steps", 1)
    if training.get("use_vllm") and training.get("vllm_mode") != "server":
        percents = range(round(100 * training.get("vllm_gpu_memory_utilization", DEFAULT_SHARE)) - 5, 9, -5)
        yield [{"vllm_gpu_memory_utilization": percent / 100} for percent in percents]
        yield [{"vllm_enable_sleep_mode": True}]
    parts = [part for part in (2, 4, 8, 16, 32) if rows % part == 0]
    yield [{"per_device_train_batch_size": rows // n, "gradient_accumulation_steps": steps * n} for n in parts]
    sharded = [{"sharding": "fsdp"}] if training.get("sharding") != "fsdp" and gpus > 1 else []
    yield [*sharded, {"gpus": 2 * gpus, "sharding": "fsdp"}]
    # An adapter without vLLM draws in fp32, which flash-attention does not take (`mcgrpo.study.fit.check_attention`).
    if "lora" not in training and (
        training.get("use_vllm") or training.get("attn_implementation") != "flash_attention_2"
    ):
        yield [{"lora": {"r": 16, "target_modules": "all-linear"}}]
