"""Sign flips that are injected on purpose: which advantages to negate; needs torch only."""

from typing import Literal, get_args

import torch
from torch import Tensor

from mcgrpo.trainer.seeds import seed_of

FlipRule = Literal["bernoulli", "exact"]
FLIP_RULES: tuple[str, ...] = get_args(FlipRule)


def check_flips(rate: float, rule: FlipRule, num_generations: int) -> None:
    """Refuse sign flips that cannot be drawn.

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


def draw_flips(keep: Tensor, rate: float, rule: FlipRule, key: str) -> Tensor:
    """Which advantages to negate: a pure function of its arguments, the same on every process and device.

    `bernoulli`: each of the drawn rows with probability `rate`, independently. `exact`: `rate` of the kept rows of
    each group, a whole number, chosen uniformly. Rows with an advantage of 0 take part in both.

    The authors' release flips (by `bernoulli`) after centring and before scaling. Neither the std nor the MAD of a
    group depends on the signs put on its deviations there, so that equals negating the finished advantage; nor does
    |reward - centre|, by which rows are kept.

    Args:
        keep: (groups, drawn) booleans, G true in each row.
        key: what the draw depends on, hashed into the generator's seed.

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
