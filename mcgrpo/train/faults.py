"""What the authors' release does to advantages and kept rows that the paper does not; see `mcgrpo.train.released`."""

from dataclasses import replace

import torch
from torch import Tensor

from mcgrpo.estimators import Estimate, keep_largest


def apply_faults(estimated: Estimate, num_generations: int, drop_rule: str, rescale: bool) -> Estimate:
    """An estimate with `drop_rule` and `rescale_by_nonzero` of a `ReleasedConfig`."""
    keep, advantages = estimated.keep, estimated.advantages
    if drop_rule == "reward":
        # Drop the smallest absolute rewards, which are the failures
        keep = keep_largest(estimated.rewards, torch.zeros_like(estimated.rewards), num_generations)
    if rescale:
        advantages = rescale_by_nonzero(advantages)
    return replace(estimated, keep=keep, advantages=advantages)


def rescale_by_nonzero(advantages: Tensor) -> Tensor:
    """Advantages times rows of the group / its non-zero advantages; (groups, drawn) -> (groups, drawn).

    With one success among three and a MAD of 0, an advantage of 2000 becomes 6000.
    """
    nonzero = (advantages != 0).sum(dim=1, keepdim=True).clamp(min=1)
    return advantages * (advantages.size(1) / nonzero)
