"""The distribution of reward probabilities over prompts, from few samples of each.

A share of k samples varies more than the probability behind it: on average, p (1 - p) comes out as (k - 1) / k of it,
and a prompt that failed 8 of 8 times is not one that always fails. So the distribution is taken that makes all counts
most likely, of any shape (nonparametric maximum likelihood; Kiefer and Wolfowitz, 1956), on a grid, by the EM
algorithm. k samples fix its first k moments; what a larger group would see depends on the fit as well.
"""

import math

import torch
from torch import Tensor

from mcgrpo.commands.advise.samples import Samples
from mcgrpo.estimators.enumeration import count_vectors

MOST_POINTS = 400
ITERATIONS = 300


def mixtures(samples: Samples, resamples: int, seed: int) -> tuple[Tensor, Tensor]:
    """The distribution over prompts, and those of bootstrap samples of the prompts.

    Returns:
        points: (points, levels) float64, reward probabilities.
        shares: (1 + resamples, points) float64, the share of prompts at each; the first row is of all prompts.
    """
    different, index = samples.counts.unique(dim=0, return_inverse=True)
    prompts = len(index)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(prompts, (resamples, prompts), generator=generator)
    rows = torch.cat([torch.arange(prompts).unsqueeze(0), drawn])
    times = torch.zeros(len(rows), len(different), dtype=torch.float64)
    times.scatter_add_(1, index[rows], torch.ones_like(rows, dtype=torch.float64))
    weights = times / prompts
    if samples.exact:
        return different, weights
    points = grid(samples.counts.size(1))
    return points, fit(different, weights, points)


def grid(levels: int) -> Tensor:
    """Reward probabilities, denser towards 0; (points, levels) float64."""
    steps = max(size for size in range(1, 101) if math.comb(size + levels - 1, levels - 1) <= MOST_POINTS)
    squares = count_vectors(levels, steps).double() ** 2
    return squares / squares.sum(dim=1, keepdim=True)


def fit(counts: Tensor, weights: Tensor, points: Tensor, iterations: int = ITERATIONS) -> Tensor:
    """The most likely distributions on a grid.

    Args:
        counts: (kinds, levels), samples with each reward.
        weights: (fits, kinds), the share of prompts with these counts, for each fit.
        points: (points, levels), reward probabilities.
        iterations: of the EM algorithm, from equal shares.

    Returns:
        (fits, points), shares of prompts.
    """
    logs = torch.special.xlogy(counts.unsqueeze(1), points).sum(dim=2)
    likely = (logs - logs.amax(dim=1, keepdim=True)).exp()
    shares = torch.full((len(weights), len(points)), 1 / len(points), dtype=torch.float64)
    for _ in range(iterations):
        shares = shares * ((weights / (shares @ likely.T).clamp(min=1e-300)) @ likely)
    return shares


def part(shares: Tensor, chosen: Tensor, prompts: int) -> Tensor | None:
    """A distribution on the chosen points alone; None if less than half a prompt is there."""
    there = shares * chosen
    return there / there.sum() if there.sum() * prompts >= 0.5 else None
