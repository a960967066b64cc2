"""The paper's equations in float64, a row at a time, with neither TRL nor our estimators.

P:n is a line of the paper's LaTeX source. What it leaves open is as TRL has it: s_r is the standard deviation of a
sample, its epsilon 1e-4, and the KL term is k3 (Schulman, 2020), a token at a time, weighted as the surrogate.
"""

import statistics
from typing import NamedTuple

import torch

CLIP = 0.2
MAD_EPSILON = 1e-3  # the release's
STD_EPSILON = 1e-4  # TRL's


class Row(NamedTuple):
    """A completion that is trained on: token ids of prompt and completion, and the advantage."""

    prompt: list[int]
    completion: list[int]
    advantage: float


def advantages(method: str, rewards: list[float]) -> list[float]:
    """Of a prompt's rollouts, about the median (P:203, 209, 214) or the mean (P:137); Dr. GRPO's undivided (P:556)."""
    centre = statistics.median(rewards) if method.startswith("mc-") else statistics.fmean(rewards)
    deviations = [reward - centre for reward in rewards]
    if method in ("dr-grpo", "mc-dr-grpo"):
        return deviations
    if method.startswith("mc-"):
        return [each / (statistics.median(map(abs, deviations)) + MAD_EPSILON) for each in deviations]
    return [each / (statistics.stdev(rewards) + STD_EPSILON) for each in deviations]


def kept(method: str, values: list[float]) -> list[int]:
    """Which of one prompt's rollouts are trained on: not the pivot (P:246), nor the control's smallest |A| (P:499)."""
    if not method.startswith("mc-") and method != "grpo-plus1":
        return list(range(len(values)))
    dropped = min(range(len(values)), key=lambda place: abs(values[place]))  # the first drawn among equals
    return [place for place in range(len(values)) if place != dropped]


def log_probabilities(model: torch.nn.Module, row: Row) -> torch.Tensor:
    """Of each token of the completion, without padding: shape (tokens,)."""
    logits = model(input_ids=torch.tensor([[*row.prompt, *row.completion]])).logits[0, len(row.prompt) - 1 : -1]
    return logits.log_softmax(dim=-1)[torch.arange(len(row.completion)), torch.tensor(row.completion)]


class Policies(NamedTuple):
    """Models in float64: the one that is trained, the one that drew the rollouts, the untrained one."""

    now: torch.nn.Module
    old: torch.nn.Module
    reference: torch.nn.Module


def loss(method: str, rows: list[Row], policies: Policies, beta: float, longest: int) -> torch.Tensor:
    """What one update minimises: the clipped surrogate (P:226) less beta times the KL term, negated.

    Args:
        rows: those of all prompts of the update, G of each.
        longest: `max_completion_length`, Dr. GRPO's normaliser.
    """
    tokens = sum(len(row.completion) for row in rows)
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        now = log_probabilities(policies.now, row)
        with torch.no_grad():
            old, reference = (log_probabilities(model, row) for model in (policies.old, policies.reference))
        ratio = (now - old).exp()
        surrogate = torch.minimum(ratio * row.advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * row.advantage)
        penalty = (reference - now).exp() - (reference - now) - 1
        divisor = {
            "grpo": len(rows) * len(row.completion),
            "dapo": tokens,
            "dr-grpo": len(rows) * longest,
        }[method.removeprefix("mc-").removesuffix("-plus1")]
        total = total - (surrogate - beta * penalty).sum() / divisor
    return total
