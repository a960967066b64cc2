"""Sampling with one random number a row, which methods that are compared have in common.

`torch.multinomial` draws one for each token of the vocabulary. With a small model on a CPU, that takes a quarter of the
time of generation.
"""

import torch
from torch import Tensor


class InverseTransform:
    """Draws the next tokens of rollouts.

    A token is where the cumulative distribution passes a uniform number
    ([inverse transform sampling](https://en.wikipedia.org/wiki/Inverse_transform_sampling)), in float64: in float32,
    the probabilities of rare tokens would be lost beside a sum close to 1.

    The k-th rollout of a prompt has random numbers of its own, however many rollouts follow it. So two trainings with
    one seed, of which one draws G rollouts and the other G+1, have G in common as long as their models agree
    ([common random numbers](https://en.wikipedia.org/wiki/Variance_reduction)): their difference has less noise.

    Args:
        prompts: (rows, length) tokens; the rollouts of a prompt follow one another.
    """

    def __init__(self, prompts: Tensor) -> None:
        self.seed = int(torch.randint(2**62, ()))
        self.rollout, self.prompt = _rollouts(prompts)
        self.size = int(self.rollout.max()) + 1, int(self.prompt.max()) + 1

    def __call__(self, scores: Tensor, length: int, rows: Tensor) -> Tensor:
        """(rows, vocabulary) logits of the given rows, which have `length` tokens so far -> (rows,) tokens."""
        generator = torch.Generator().manual_seed(self.seed + length)
        # filled rollout by rollout: more of them do not change the numbers of the first
        uniform = torch.rand(self.size, dtype=torch.float64, generator=generator)[self.rollout[rows], self.prompt[rows]]
        cumulative = scores.double().softmax(dim=-1).cumsum(dim=-1)
        # to the right of equal sums: a token of probability 0 adds nothing, and is never drawn
        drawn = torch.searchsorted(cumulative, uniform.unsqueeze(1) * cumulative[:, -1:], right=True)
        return drawn.squeeze(1).clamp(max=scores.size(-1) - 1)


def _rollouts(prompts: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of (rows, length) prompts: which rollout of its prompt it is, and which prompt that is."""
    rows = torch.arange(len(prompts))
    begins = torch.cat([torch.ones(1, dtype=torch.bool), (prompts[1:] != prompts[:-1]).any(dim=1)])
    return rows - rows.where(begins, 0).cummax(dim=0).values, begins.cumsum(dim=0) - 1
