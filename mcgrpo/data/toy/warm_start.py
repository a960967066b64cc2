"""Supervised training on demonstrations of toy problems, so that reinforcement learning starts from a useful model."""

import random
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerFast, get_cosine_schedule_with_warmup

from mcgrpo.data.toy.demonstrator import Habits, demonstrate
from mcgrpo.data.toy.task import problems

IGNORED = -100
"""The label that the loss of transformers ignores, for prompts and padding."""


@dataclass(frozen=True)
class WarmStart:
    """AdamW with a cosine schedule; `three_step_share` of the demonstrations are of three-step problems.

    `slip_low` and `slip_high` as in `Habits`: the more slips, the lower the accuracy of the model that is taught.
    """

    steps: int
    batch_size: int
    learning_rate: float
    three_step_share: float = 0.2
    problems: int = 8000
    warmup_steps: int = 30
    slip_low: float = Habits.slip_low
    slip_high: float = Habits.slip_high


def warm_start(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, spec: WarmStart, seed: int) -> None:
    """Train `model` in place on demonstrations of problems from the `warm` split only."""
    rng = random.Random(seed)
    pools = [problems(kind, "warm", spec.problems, seed) for kind in ("two-step", "three-step")]
    optimizer = torch.optim.AdamW(model.parameters(), lr=spec.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = get_cosine_schedule_with_warmup(optimizer, min(spec.warmup_steps, spec.steps), spec.steps)
    habits = Habits(slip_low=spec.slip_low, slip_high=spec.slip_high)
    model.train()
    for _ in range(spec.steps):
        chosen = [rng.choice(pools[rng.random() < spec.three_step_share]) for _ in range(spec.batch_size)]
        pairs = [(problem.question, demonstrate(problem, rng, habits)) for problem in chosen]
        model(**encode(tokenizer, pairs)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


def encode(tokenizer: PreTrainedTokenizerFast, pairs: list[tuple[str, str]]) -> dict[str, torch.Tensor]:
    """A batch of (prompt, completion): `input_ids`, `attention_mask` and `labels`, each `len(pairs) x longest`.

    Completions end in the end-of-sequence token; rows are padded on the right; the loss ignores prompts and padding.
    """
    prompts, completions = (tokenizer(list(texts))["input_ids"] for texts in zip(*pairs, strict=True))
    rows, labels = [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        target = [*completion, tokenizer.eos_token_id]
        rows.append(torch.tensor(prompt + target))
        labels.append(torch.tensor([IGNORED] * len(prompt) + target))
    return {
        "input_ids": pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in rows], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    }
