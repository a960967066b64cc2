"""The cost of an optimizer step at the shape of Qwen3-1.7B, with random weights in bf16: seconds a phase, memory."""

import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, Qwen3Config
from transformers.utils import logging

from bench.gpu.checks import G
from bench.gpu.rows import Row
from bench.training.contenders import CONTENDERS
from bench.training.measure import Case, Task, measure
from bench.training.task import RIGHT, scripted_reward
from mcgrpo.data.prompts import as_prompt
from mcgrpo.data.toy.task import examples
from mcgrpo.data.toy.tokenizer import byte_tokenizer
from mcgrpo.train.arguments import TRL_CHANGES

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
NAMES = ("trl", "trl-plus1", "mc", "mc-compact")
BETAS = (0.0, 0.04)
STEPS = 3
PROMPTS, TOKENS = {"cuda": 8, "cpu": 2}, {"cuda": 128, "cpu": 8}
"""Of a step, and of each completion; the paper's 1024 would take an hour without vLLM."""


def steps(device: str, left: Callable[[], float]) -> Iterator[Row]:
    """TRL at G and G+1, ours with and without compact updates; with and without a reference model."""
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), QWEN3_1_7B if device == "cuda" else TINY, device)
        task = task_of(Path(folder), device)
        for beta in BETAS:
            for name in NAMES:
                case = Case(G, beta, TOKENS[device])
                label = f"{CONTENDERS[name].label}, G={G}, beta={beta:g}"
                if not left():
                    yield Row("steps", label, status="skipped", note="no time left")
                    continue
                yield from costs(task, case, name, label, device)


def save_model(folder: Path, shape: dict[str, int], device: str) -> None:
    """A model with random weights in bf16 and a tokenizer of bytes, which knows only the first tokens of the model."""
    tokenizer = byte_tokenizer()
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    with torch.device(device):
        config = Qwen3Config(**shape, **special, tie_word_embeddings=True, max_position_embeddings=4096)
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def task_of(model: Path, device: str) -> Task:
    """Generated problems, and the recipe of the paper's study with shorter completions.

    Prompts are GSM8K's, about 500 tokens; on a CPU, the questions alone.
    """
    problems = examples("two-step", "train", 64, 0)
    prompt = "gsm8k" if device == "cuda" else "plain"
    prompts = Dataset.from_list([{"prompt": as_prompt(prompt, each.question)} for each in problems])
    settings: dict[str, Any] = {
        **TRL_CHANGES,
        "bf16": True,
        "gradient_checkpointing": True,
        "learning_rate": 1e-6,
        "loss_type": "grpo",
        "use_cpu": device == "cpu",
    }
    return Task(model, prompts, scripted_reward(RIGHT), settings, RIGHT, PROMPTS[device])


def costs(task: Task, case: Case, name: str, label: str, device: str) -> Iterator[Row]:
    """The rows of one trainer, which has the device to itself."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        (timing,) = measure(task, case, [name], 1, STEPS)
    except torch.cuda.OutOfMemoryError:
        yield Row("steps", label, status="skipped", note="out of memory")
        return
    yield Row("steps", label, "seconds a step", timing.seconds)
    for phase, seconds in timing.phases.items():
        yield Row("steps", label, f"seconds of {phase}", seconds)
    if device == "cuda":
        yield Row("steps", label, "allocated memory, GiB", torch.cuda.max_memory_allocated() / 2**30, note="at most")
    else:
        yield Row("steps", label, "allocated memory, GiB", status="skipped", note="no GPU")
