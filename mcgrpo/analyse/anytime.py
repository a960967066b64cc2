"""An interval of a mean that stays valid however often one looks: seeds may be added until it says enough.

The t-test martingale with a Gaussian mixture: Wang and Ramdas (2023, arXiv 2310.03722), after Lai (1976, Annals of
Statistics 4(2)). Under normal values of unknown variance, the intervals of all numbers of values hold the mean together
with a probability of at least the level. `tests/analyse/test_anytime.py` measures that, and what Student's interval
does if one stops as soon as it excludes 0.
"""

import math
from collections.abc import Sequence

import numpy as np

from mcgrpo.analyse.crossed import SAME
from mcgrpo.analyse.stats import LEVEL

EFFECT = 2.0
"""Standard deviation of the mixture over effects, in standard deviations of a value; set before the first look.

It is where the interval is narrowest, not an assumption: with 2, at 4 to 12 values.
"""


def half_width(values: Sequence[float]) -> float:
    """Half the width of the interval of these values; infinite for fewer than two, equal ones, and too few.

    With n values, g = 1 + n EFFECT² and t = √n (mean - μ) / sd, the martingale of a mean μ is
    g^(-1/2) ((1 + t² / (n - 1)) / (1 + t² / (g (n - 1))))^(n / 2); the interval is where it is below 1 / (1 - LEVEL).
    """
    n = len(values)
    if n < 2:
        return math.inf
    spread = 1 + n * EFFECT**2
    bound = (spread / (1 - LEVEL) ** 2) ** (1 / n)
    if bound >= spread:
        return math.inf
    squared = (n - 1) * (bound - 1) / (1 - bound / spread)
    deviation = float(np.std(values, ddof=1))
    return deviation * math.sqrt(squared / n) if deviation > SAME else math.inf


def limits(values: Sequence[float]) -> tuple[float, float]:
    """What the intervals of the first 2, 3, ... and all values, in the order in which they came, have in common."""
    low, high = -math.inf, math.inf
    for n in range(2, len(values) + 1):
        half, mean = half_width(values[:n]), float(np.mean(values[:n]))
        low, high = max(low, mean - half), min(high, mean + half)
    return low, high
