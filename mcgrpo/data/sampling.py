"""Sampling with one random number a row, which methods that are compared have in common.

`torch.multinomial` draws one for each token of the vocabulary. With a small model on a CPU, that takes a quarter of the
time of generation.
"""

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, TemperatureLogitsWarper, TopPLogitsWarper


class InverseTransform(LogitsProcessor):
    """Draws each row's next token and leaves it as the only one possible: for `generate(do_sample=False)`.

    The token is where the cumulative distribution passes a uniform number
    ([inverse transform sampling](https://en.wikipedia.org/wiki/Inverse_transform_sampling)), in float64: in float32,
    the probabilities of rare tokens would be lost beside a sum close to 1.

    The k-th rollout of a prompt has random numbers of its own, however many rollouts follow it. So two trainings with
    one seed, of which one draws G rollouts and the other G+1, have G in common as long as their models agree
    ([common random numbers](https://en.wikipedia.org/wiki/Variance_reduction)): their difference has less noise.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.rollouts: tuple[Tensor, Tensor] | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """(rows, vocabulary) logits -> 0 for the token that was drawn, minus infinity for all others."""
        if self.rollouts is None:
            self.seed, self.rollouts = int(torch.randint(2**62, ())), _rollouts(input_ids)
        size = [int(each.max()) + 1 for each in self.rollouts]
        generator = torch.Generator().manual_seed(self.seed + input_ids.size(1))
        # filled rollout by rollout: more of them do not change the numbers of the first
        uniform = torch.rand(size, dtype=torch.float64, generator=generator)[self.rollouts].unsqueeze(1)
        cumulative = scores.double().softmax(dim=-1).cumsum(dim=-1)
        # to the right of equal sums: a token of probability 0 adds nothing, and is never drawn
        drawn = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn.clamp(max=scores.size(-1) - 1), 0.0)


def _rollouts(prompts: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of (rows, length) prompts: which rollout of its prompt it is, and which prompt that is."""
    rows = torch.arange(len(prompts))
    begins = torch.cat([torch.ones(1, dtype=torch.bool), (prompts[1:] != prompts[:-1]).any(dim=1)])
    return rows - rows.where(begins, 0).cummax(dim=0).values, begins.cumsum(dim=0) - 1


def sampling(temperature: float, top_p: float) -> LogitsProcessorList:
    """The processors that sample at a temperature from the smallest set of tokens with probability `top_p`."""
    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    return LogitsProcessorList([TemperatureLogitsWarper(float(temperature)), *nucleus, InverseTransform()])
