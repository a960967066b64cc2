"""The divisor of a group whose scale is 0 although its rewards differ.

This is common: the MAD of a group is 0 as soon as more than half of its rewards are equal.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from mcgrpo.estimators.scales import spread
from mcgrpo.estimators.statistics import mean

MadZero = Literal["epsilon", "std", "mean_absolute_deviation", "unit", "skip"]
MAD_ZERO: tuple[str, ...] = get_args(MadZero)


def divisor(mad_zero: MadZero, rewards: Tensor, centre: Tensor, scale: Tensor, epsilon: float) -> Tensor:
    """The divisor of the deviations: scale + epsilon, or another value where the scale is exactly 0.

    `epsilon`: epsilon alone: advantages are deviation / epsilon (MC-GRPO, Eq. 3, and its release);
    `std`: the group's standard deviation about its mean, + epsilon (as GRPO);
    `mean_absolute_deviation`: the mean of |reward - centre| over the group, + epsilon;
    `unit`: 1: deviations are not divided (as Dr. GRPO);
    `skip`: infinity: such a group has no advantage.

    Args:
        rewards: (groups, drawn), NaN where unscorable.
        centre: broadcasts to the rewards.
        scale: (groups, 1) or (1, 1).

    Returns:
        (groups, 1), or (1, 1) with `epsilon`.
    """
    if mad_zero == "epsilon":
        return scale + epsilon
    if mad_zero == "std":
        other = spread(rewards, centre) + epsilon
    elif mad_zero == "mean_absolute_deviation":
        other = mean((rewards - centre).abs()) + epsilon
    else:
        other = torch.full_like(scale, 1.0 if mad_zero == "unit" else torch.inf)
    return torch.where(scale == 0, other, scale + epsilon)
