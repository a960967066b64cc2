"""An oracle for the signs of advantages: many more rollouts of a prompt, scored and discarded."""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from mcgrpo.trainer.seeds import random_state, seed_of

if TYPE_CHECKING:
    from mcgrpo.trainer.trainer import MCGRPOTrainer


def oracle_means(trainer: "MCGRPOTrainer", inputs: Sequence[dict[str, Any]], size: int) -> list[float | None]:
    """The mean reward of `size` rollouts of each prompt, drawn from the current policy.

    Training is not affected, to the bit: random states, metrics and counters are restored, and the rollouts have their
    own seed, made from `args.seed`, the global step and the process. All processes call it with the same prompts; each
    draws its share, in batches no larger than those of training.

    Args:
        trainer: a trainer that draws with transformers, not vLLM.
        inputs: rows of the training set, one for each prompt.
        size: rollouts of a prompt.

    Returns:
        For each prompt the mean over the rollouts that could be scored; None if there were none. It is exact: if all
        rewards are equal, so is their mean.
    """
    processes = trainer.accelerator.num_processes
    each = -(-size // processes)
    rows = [dict(row) for row in inputs for _ in range(each)]
    args = trainer.args
    groups = args.per_device_train_batch_size * args.steps_per_generation // args.num_generations
    limit = groups * (args.num_generations + args.num_extra_rollouts)
    key = f"{args.seed}/oracle/{trainer.state.global_step}/{trainer.accelerator.process_index}"
    with random_state(trainer.accelerator.device, seed_of(key)), unchanged(trainer):
        batches = [_rewards(trainer, rows[start : start + limit]) for start in range(0, len(rows), limit)]
    rewards = torch.cat(batches, dim=1).view(processes, len(inputs), each).transpose(0, 1).flatten(1)[:, :size]
    scored = [[value for value in values if value == value] for values in rewards.tolist()]
    return [statistics.mean(values) if values else None for values in scored]


def _rewards(trainer: "MCGRPOTrainer", rows: list[dict[str, Any]]) -> torch.Tensor:
    """Draw a rollout for each of this process's rows; returns the rewards of all processes, (processes, rows)."""
    prompts = [row["prompt"] for row in rows]
    _, completion_ids, _, completions, *_ = trainer._generate(prompts)
    rewards = trainer._calculate_rewards(rows, prompts, completions, completion_ids)
    return trainer.weighted(rewards).view(-1, len(rows))


@contextmanager
def unchanged(trainer: "MCGRPOTrainer") -> Iterator[None]:
    """Restore what a trainer has counted and not yet logged."""
    logs = (trainer._metrics["train"], trainer._pending_extra_logs, trainer._pending_metrics)
    before = [{name: list(values) for name, values in log.items()} for log in logs]
    seconds, tokens = dict(trainer._timer.seconds), trainer.state.num_input_tokens_seen
    try:
        yield
    finally:
        for log, values in zip((*logs, trainer._timer.seconds), (*before, seconds), strict=True):
            log.clear()
            log.update(values)
        trainer.state.num_input_tokens_seen = tokens
