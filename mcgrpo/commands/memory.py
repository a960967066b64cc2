"""The memory of a study's trainings (`mcgrpo.study.memory`): printed by `plan`, compared with the cards by `doctor`."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from tabulate import tabulate

from mcgrpo.launch.gpus import memory_of_gpus
from mcgrpo.records import Run, cell_name
from mcgrpo.study.memory import DEFAULT_SHARE, GIB, PROMPT_TOKENS, Memory, is_known, memory, row_tokens
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.model_config import model_config
from mcgrpo.study.plan import Config, runs

FULL = 0.92
"""Share of a card from which on it is near the edge: fragments are not computed, nor is what other programs take."""


class Largest(NamedTuple):
    """The training of a setting that takes most, and its memory; None for a model whose shape is not known."""

    run: Run
    memory: Memory | None
    tokens: int


def largest(config: Config) -> list[Largest]:
    """For each setting with trainings on GPUs, the one that needs the largest card."""
    found: dict[str, Largest] = {}
    gpus, shapes = config.get("gpus", 0), {name: model_config(config, name) for name in config["models"]}
    for run in runs(config) if gpus else ():
        if run.method == UNTRAINED:
            continue
        shape = shapes[run.model]
        taken = memory(run, gpus, shape) if is_known(shape) else None
        other = found.get(run.setting)
        if not (other and other.memory and taken) or taken.smallest_card > other.memory.smallest_card:
            found[run.setting] = Largest(run, taken, row_tokens(run.training, shape))
    return list(found.values())


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
        rows.append((run.setting, batch, sharding, *map(_gib, parts), share, _gib(taken.smallest_card)))
    if rows:
        headers = ["setting", "rows x tokens", "sharding", "weights", "AdamW", "reference", "working"]
        headers += ["training", "vLLM", "smallest card"]
        yield "\nMemory of a training on each of its GPUs, GiB (the largest of each setting):"
        sides = ("left", "right", "left", *["right"] * 7)
        yield tabulate(rows, headers, "simple", disable_numparse=True, colalign=sides)
        yield (
            "computed from the model's shape; working: gradients, activations and gathered weights together, at most; "
            f"prompts of {PROMPT_TOKENS} tokens are assumed; vLLM: its share of the card (docs/gpu.md)"
        )
    if unknown:
        names = ", ".join(sorted(set(unknown)))
        yield f"\nMemory: unknown for {names} (no sizes in models.NAME.config, and no config.json)"


def _gib(number: float) -> str:
    return f"{number / GIB:.1f}"


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
        cell = cell_name(asdict(run))
        if taken.smallest_card > card:
            yield "error", f"{finding} ({cell})", _remedy(config, run, gpus, card)
        elif taken.smallest_card > FULL * card:
            yield "warning", f"{finding}, near the edge ({cell})", _remedy(config, run, gpus, FULL * card)
        else:
            yield "ok", finding, ""


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
    if "lora" not in training:
        yield [{"lora": {"r": 16, "target_modules": "all-linear"}}]
