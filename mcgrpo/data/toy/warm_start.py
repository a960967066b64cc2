"""Supervised training on demonstrations of toy problems, so that reinforcement learning starts from a useful model."""

import random
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerFast, get_cosine_schedule_with_warmup

from mcgrpo.data.toy.demonstrator import Habits, demonstrate, is_solved
from mcgrpo.data.toy.task import Problem, problems

IGNORED = -100
"""The label that the loss of transformers ignores, for prompts and padding."""
CHECK_EVERY, HELD_OUT, COMPLETION_TOKENS = 20, 256, 40
"""Steps between two checks of `until_solved`; the problems of a check, and the tokens that solve each."""


@dataclass(frozen=True)
class WarmStart:
    """AdamW with a cosine schedule; `three_step_share` of the demonstrations are of three-step problems.

    `slip_low` and `slip_high` as in `Habits`: the more slips, the lower the accuracy of the model that is taught.
    With `until_solved` training ends once the model solves that share of held-out problems, and `steps` is the most.
    """

    steps: int
    batch_size: int
    learning_rate: float
    three_step_share: float = 0.2
    problems: int = 8000
    warmup_steps: int = 30
    slip_low: float = Habits.slip_low
    slip_high: float = Habits.slip_high
    until_solved: float | None = None


def warm_start(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, spec: WarmStart, seed: int) -> None:
    """Train `model` in place, on its device, on demonstrations of problems from the `warm` split only.

    Raises:
        ValueError: if the model does not solve the share `until_solved` of held-out problems within `steps`.
    """
    rng = random.Random(seed)
    pools = [problems(kind, "warm", spec.problems, seed) for kind in ("two-step", "three-step")]
    optimizer = torch.optim.AdamW(model.parameters(), lr=spec.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = get_cosine_schedule_with_warmup(optimizer, min(spec.warmup_steps, spec.steps), spec.steps)
    habits = Habits(slip_low=spec.slip_low, slip_high=spec.slip_high)
    held_out = problems("two-step", "train", HELD_OUT, seed)
    for step in range(1, spec.steps + 1):
        model.train()
        chosen = [rng.choice(pools[rng.random() < spec.three_step_share]) for _ in range(spec.batch_size)]
        pairs = [(problem.question, demonstrate(problem, rng, habits)) for problem in chosen]
        batch = {name: tensor.to(model.device) for name, tensor in encode(tokenizer, pairs).items()}
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if spec.until_solved is not None and (step % CHECK_EVERY == 0 or step == spec.steps):
            share = share_solved(model, tokenizer, held_out)
            print(f"warm start: {share:.1%} of held-out problems solved after {step} steps", flush=True)
            if share >= spec.until_solved:
                return
    if spec.until_solved is not None:
        raise ValueError(
            f"model spec: warm_start.until_solved {spec.until_solved}: {share:.3f} of held-out problems were solved "
            f"after {spec.steps} steps: allow more `steps`, or fewer slips"
        )


@torch.no_grad()
def share_solved(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, chosen: list[Problem]) -> float:
    """The share of the problems that a completion sampled at temperature 1 solves."""
    model.eval()
    prompts = tokenizer([problem.question for problem in chosen], padding=True, return_tensors="pt").to(model.device)
    rows = model.generate(**prompts, do_sample=True, top_k=0, max_new_tokens=COMPLETION_TOKENS)
    texts = tokenizer.batch_decode(rows[:, prompts["input_ids"].size(1) :], skip_special_tokens=True)
    return sum(map(is_solved, chosen, texts)) / len(chosen)


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
