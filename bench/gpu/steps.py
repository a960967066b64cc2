"""The cost of an optimizer step at the shape of Qwen3-1.7B, with random weights in bf16: seconds, memory."""

import gc
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from bench.gpu.checks import G, Row
from bench.training.measure import CONTENDERS, Task, train
from bench.training.task import prompts_of, reward_of, save_model
from mcgrpo.train.arguments import TRL_CHANGES
from mcgrpo.trainer.timing import PHASES, now

QWEN3_1_7B = {
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
TINY = {
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
}
RATIOS = {"mean": "importance sampling ratio, mean", "frac_zero": "share that it masks"}
"""Logged with vLLM -> quantity: how far its probabilities are from the trainer's."""
BETAS = (0.0, 0.04)
STEPS = 4
"""The first warms up."""
SHARE = 0.25
"""Of groups whose rewards are equal."""
PROMPTS, TOKENS = {"cuda": 8, "cpu": 4}, {"cuda": 128, "cpu": 8}
"""Of a step, and of each completion; the paper's 1024 would take an hour without vLLM."""
GIB = 2**30


def steps(device: str, left: Callable[[], float]) -> Iterator[Row]:
    """TRL's mean, our mean and our median; with and without a reference model."""
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), QWEN3_1_7B if device == "cuda" else TINY, torch.bfloat16, device)
        task = task_of(Path(folder), device, STEPS, TOKENS[device])
        for beta in BETAS:
            for name, contender in CONTENDERS.items():
                label = f"{contender.label}, G={G}, beta={beta:g}"
                if not left():
                    yield Row("steps", label, status="skipped", note="no time left")
                    continue
                yield from costs(task, name, beta, label, device)


def task_of(model: Path, device: str, steps: int, tokens: int) -> Task:
    """Generated problems for a number of steps, and the recipe of the paper's study with shorter completions.

    Prompts are GSM8K's, about 500 tokens; on a CPU, the questions alone.
    """
    settings: dict[str, Any] = {
        **TRL_CHANGES,
        "bf16": True,
        "gradient_checkpointing": True,
        "learning_rate": 1e-6,
        "loss_type": "grpo",
        "use_cpu": device == "cpu",
    }
    prompts = prompts_of("gsm8k" if device == "cuda" else "plain", PROMPTS[device], steps)
    return Task(model, prompts, settings, PROMPTS[device], tokens)


def costs(task: Task, name: str, beta: float, label: str, device: str) -> Iterator[Row]:
    """The rows of one trainer, which has the device to itself."""
    clear(device)
    reward = reward_of(SHARE, task.prompts_per_step)
    try:
        seconds, log = train(task, name, G, reward, STEPS, now, beta=beta)
    except torch.cuda.OutOfMemoryError:
        yield Row("steps", label, status="skipped", note="out of memory")
        return
    yield from rows_of("steps", label, seconds, log, device)


def clear(device: str) -> None:
    """Give back the memory of the training before, and count anew."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def rows_of(part: str, case: str, seconds: list[float], log: list[dict[str, float]], device: str) -> Iterator[Row]:
    """Medians without the first step; our trainers log the seconds of each phase."""
    yield Row(part, case, "seconds a step", statistics.median(seconds[1:]))
    for phase in PHASES:
        if (logged := f"seconds/{phase}") in log[0]:
            yield Row(part, case, f"seconds of {phase}", statistics.median(row[logged] for row in log[1:]))
    for name, quantity in RATIOS.items():
        if (logged := f"sampling/importance_sampling_ratio/{name}") in log[0]:
            yield Row(part, case, quantity, statistics.mean(row[logged] for row in log))
    if device == "cuda":
        yield Row(part, case, "allocated memory, GiB", torch.cuda.max_memory_allocated() / GIB, note="at most")
    else:
        yield Row(part, case, "allocated memory, GiB", status="skipped", note="no GPU")
