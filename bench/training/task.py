"""What is trained: a model with random weights, generated problems, and a reward with a set share of equal groups."""

import random
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, Qwen3Config

from mcgrpo.data.prompts import as_prompt
from mcgrpo.data.toy.examples import examples
from mcgrpo.data.toy.tokenizer import byte_tokenizer


def save_model(folder: Path, shape: Mapping[str, int], dtype: torch.dtype, device: str = "cpu") -> int:
    """Save a model in Qwen3's shape with random weights, and a tokenizer of bytes; returns the number of parameters."""
    tokenizer = byte_tokenizer()
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    with torch.device(device):
        config = Qwen3Config(**shape, **special, tie_word_embeddings=True, max_position_embeddings=4096)
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


def prompts_of(template: str, prompts_per_step: int, steps: int) -> Dataset:
    """Word problems in a prompt template, in the order of steps; `position` is a prompt's place within its step."""
    problems = examples("two-step", "train", prompts_per_step * steps, 0)
    return Dataset.from_list(
        [
            {"prompt": as_prompt(template, problem.question), "position": number % prompts_per_step}
            for number, problem in enumerate(problems)
        ]
    )


def reward_of(share: float, prompts_per_step: int) -> Callable[..., list[float]]:
    """A reward of 0 or 1 that is equal within `share` of the groups of each step.

    In the other groups each completion has 1 with probability 0.5, decided by its tokens; where that makes all equal,
    the first is changed.
    """

    def reward(completion_ids: list[list[int]], position: list[int], **kwargs: Any) -> list[float]:
        rewards: list[float] = []
        for place, group in groupby(zip(position, completion_ids, strict=True), key=lambda row: row[0]):
            right = [float(random.Random(str(ids)).random() < 0.5) for _, ids in group]
            if place < round(share * prompts_per_step):
                right = [0.0] * len(right)
            elif len(set(right)) == 1:
                right[0] = 1.0 - right[0]
            rewards += right
        return rewards

    return reward
