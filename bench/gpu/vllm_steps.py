"""The seconds of an optimizer step with vLLM in the trainer's process: TRL's mean, our mean and our median, in turn.

One engine draws for all trainers: it takes a minute to start. The contenders train in two rounds, the second in the
opposite order, so that a drift of the machine weighs on all alike.
"""

import gc
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging
from trl.generation import vllm_generation

from bench.gpu.checks import Row, last_line
from bench.gpu.steps import PROMPTS, QWEN3_1_7B, TINY, clear, rows_of, task_of
from bench.gpu.table import PART, RATIO, SECONDS, STARTED
from bench.training.measure import CONTENDERS, Task, train
from bench.training.task import reward_of, save_model
from mcgrpo.trainer.timing import now

SIZES = (2, 4, 8)
STEPS = 6
"""Of a training, the first of which warms up: in two rounds, ten are timed."""
PROMPT_TOKENS, TOKENS = {"cuda": 1024, "cpu": 256}, {"cuda": 256, "cpu": 8}
MEMORY = 0.35
"""Of the GPU, for the engine."""
SHARE = 0.5
"""Of groups whose rewards are equal."""
Timed = dict[tuple[int, str], dict[int, list[float]]]
"""Of each G and contender, in each round: the seconds of its steps."""


class Shared:
    """An engine as one trainer sees it: what a trainer sets on it ends with that trainer."""

    def __init__(self, engine: Any):
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@contextmanager
def one_engine(sequences: int) -> Iterator[list[float]]:
    """Within it, every trainer gets the engine that the first has started; yields the seconds that this took.

    Args:
        sequences: the most that any of them draws at once.
    """
    start, engines, seconds = vllm_generation.LLM, [], list[float]()

    def shared(**settings: Any) -> Shared:
        if not engines:
            begun = time.monotonic()
            engines.append(start(**settings | {"max_num_seqs": sequences}))
            seconds.append(time.monotonic() - begun)
            gc.unfreeze()  # vLLM freezes all that is there, also the first trainer's weights: they would never be freed
        return Shared(engines[0])

    vllm_generation.LLM = shared
    try:
        yield seconds
    finally:
        vllm_generation.LLM = start


def steps_with_vllm(
    device: str, left: Callable[[], float], sizes: Sequence[int] = SIZES, steps: int = STEPS
) -> Iterator[Row]:
    """Rows of each training; then, of each G, the contenders' medians and their ratios to TRL's mean."""
    logging.disable_progress_bar()
    timed: Timed = defaultdict(dict)
    orders = [list(CONTENDERS), list(reversed(CONTENDERS))]
    turns = [(turn, size, name) for turn, names in enumerate(orders, 1) for size in sizes for name in names]
    with tempfile.TemporaryDirectory() as folder, one_engine(PROMPTS[device] * (max(sizes) + 1)) as starting:
        save_model(Path(folder), QWEN3_1_7B if device == "cuda" else TINY, torch.bfloat16, device)
        task = with_vllm(task_of(Path(folder), device, steps, TOKENS[device]), device)
        for turn, size, name in turns:
            case = f"{CONTENDERS[name].label}, G={size}, round {turn}"
            if not left():
                yield Row(PART, case, status="skipped", note="no time left")
                continue
            seconds, rows = training(task, name, size, case, device)
            if seconds:
                timed[size, name][turn] = seconds
            yield from rows
            if not starting:
                return  # others would fail for the same reason
    yield from (engine_row(seconds, device) for seconds in starting)
    for size in sizes:
        yield from comparison(size, timed)


def with_vllm(task: Task, device: str) -> Task:
    """The task with rollouts of a colocated vLLM, and without a reference model."""
    vllm = {
        "beta": 0.0,
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_gpu_memory_utilization": MEMORY,
        "vllm_max_model_length": PROMPT_TOKENS[device] + task.completion_length,
    }
    return replace(task, settings=task.settings | vllm)


def training(task: Task, name: str, size: int, case: str, device: str) -> tuple[list[float], list[Row]]:
    """The seconds of one training's steps but the first (none if it failed), and its rows."""
    for variable in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):  # left by TRL: this one would take itself for one of several
        os.environ.pop(variable, None)
    clear(device)
    reward, exactly = reward_of(SHARE, task.prompts_per_step), {"min_tokens": task.completion_length}
    steps = len(task.prompts) // task.prompts_per_step
    try:
        seconds, log = train(task, name, size, reward, steps, now, generation_kwargs=exactly)
    except Exception as error:
        status = "skipped" if isinstance(error, torch.cuda.OutOfMemoryError) else "failed"
        return [], [Row(PART, case, status=status, note=f"{type(error).__name__}: {last_line(str(error))}")]
    return seconds[1:], list(rows_of(PART, case, seconds, log, device))


def engine_row(seconds: float, device: str) -> Row:
    """The engine's start, with what it and the times depend on."""
    import vllm  # not before: it sets up its own logging

    card = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    note = f"{card}, vLLM {vllm.__version__}, torch {torch.__version__}, {TOKENS[device]} tokens"
    return Row(PART, "engine", STARTED, seconds, note=note)


def comparison(size: int, timed: Timed) -> Iterator[Row]:
    """Rows of each contender at G: the median of all timed steps, and the mean over rounds of its ratio to TRL's."""
    base = timed[size, "trl"]
    for name, contender in CONTENDERS.items():
        rounds = timed[size, name]
        case, every = f"{contender.label}, G={size}", list(chain(*rounds.values()))
        if every:
            yield Row(PART, case, SECONDS, statistics.median(every), note=f"{len(every)} steps, {span(every)}")
        both = rounds.keys() & base.keys()
        if name != "trl" and both:
            ratios = [statistics.median(rounds[turn]) / statistics.median(base[turn]) for turn in sorted(both)]
            note = f"rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
            yield Row(PART, case, RATIO, statistics.geometric_mean(ratios), note=note)


def span(values: Sequence[float]) -> str:
    """The lowest and the highest."""
    return f"{min(values):.3g} to {max(values):.3g}"
