"""Sign flips injected on purpose, to see what wrong signs of advantages do to training."""

from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from mcgrpo.estimators import Advantages
from mcgrpo.trainer.seeds import seed_of

FlipRule = Literal["bernoulli", "exact"]
FLIP_RULES: tuple[str, ...] = get_args(FlipRule)


def check_flips(rate: float, rule: FlipRule, num_generations: int) -> None:
    """Refuse invalid options of sign flips.

    Raises:
        ValueError: for a rate outside [0, 1], an unknown rule, or a share of G that is not whole.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"a flip rate is a share in [0, 1], not {rate!r}")
    if rule not in FLIP_RULES:
        raise ValueError(f"unknown flip rule {rule!r}; there are: {', '.join(FLIP_RULES)}")
    flipped = rate * num_generations
    if rule == "exact" and abs(flipped - round(flipped)) > 1e-9:
        raise ValueError(
            f"flip rule 'exact': {rate:g} x {num_generations} (num_generations) = {flipped:g} rollouts of each group, "
            "which is not a whole number; use the rule 'bernoulli' or another rate"
        )


def inject_flips(estimated: Advantages, rate: float, rule: FlipRule, key: str) -> tuple[Advantages, Tensor]:
    """Negate advantages, see `draw_flips`.

    The authors' release flips (by `bernoulli`) after centring and before scaling. That equals negating the finished
    advantages: neither the std or MAD of a group nor |reward - centre|, by which rows are kept, depends on the signs.

    Returns:
        The estimate with these advantages, and the share of kept rows with an advantage other than 0 that were flipped.
    """
    flips = draw_flips(estimated.keep, rate, rule, key)
    signed = estimated.keep & (estimated.advantages != 0)
    share = (flips & signed).sum() / signed.sum().clamp(min=1)
    return replace(estimated, advantages=torch.where(flips, -estimated.advantages, estimated.advantages)), share


def draw_flips(keep: Tensor, rate: float, rule: FlipRule, key: str) -> Tensor:
    """Which advantages to negate: a pure function of its arguments, the same on every process and device.

    `bernoulli`: each row drawn, independently with probability `rate`. `exact`: a share `rate` of the kept rows of each
    group, a whole number of rows, chosen uniformly. Both include rows with an advantage of 0.

    Args:
        keep: (groups, drawn) booleans, G true in each row.
        key: the source of randomness, hashed into the generator's seed.

    Returns:
        (groups, drawn) booleans.
    """
    generator = torch.Generator().manual_seed(seed_of(key, bits=64))
    uniform = torch.rand(keep.shape, generator=generator).to(keep.device)
    if rule == "bernoulli":
        return uniform < rate
    order = uniform.masked_fill(~keep, torch.inf).argsort(dim=1, stable=True)
    flipped = round(rate * int(keep[0].sum()))
    return torch.zeros_like(keep).scatter(1, order[:, :flipped], True)
