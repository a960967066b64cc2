"""Sampling with one random number a row.

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
    """

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """(rows, vocabulary) logits -> 0 for the token that was drawn, minus infinity for all others."""
        cumulative = scores.double().softmax(dim=-1).cumsum(dim=-1)
        uniform = torch.rand(len(scores), 1, dtype=torch.float64, device=scores.device) * cumulative[:, -1:]
        # to the right of equal sums: a token of probability 0 adds nothing, and is never drawn
        drawn = torch.searchsorted(cumulative, uniform, right=True).clamp(max=scores.size(-1) - 1)
        return torch.full_like(scores, -torch.inf).scatter_(1, drawn, 0.0)


def sampling(temperature: float, top_p: float) -> LogitsProcessorList:
    """The processors that sample at a temperature from the smallest set of tokens with probability `top_p`."""
    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    return LogitsProcessorList([TemperatureLogitsWarper(float(temperature)), *nucleus, InverseTransform()])
