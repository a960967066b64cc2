"""Estimates with their intervals and one-sided tests: pure functions, no files.

Runs are few (3 to 8 seeds), so intervals and tests are Student's. A share of problems, which cannot leave [0, 1], has
limits after Clopper and Pearson instead (`Estimate.effective_n`).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

LEVEL = 0.95
DIGITS = 9
"""Decimals of a number that is printed: differences of printed numbers are exact at these."""
POWER = 0.8


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds (and problems), and what is known of its error.

    Args:
        mean: None where there is no value at all.
        seeds: how many it is the mean of.
        standard_error: None where nothing is known of it, and there is no interval.
        degrees_of_freedom: of the standard error, where there is one.
        effective_n: of a share of problems, the number of independent ones that it is worth (Korn and Graubard 1998,
            Survey Methodology 24(2)): limits are then those of Clopper and Pearson.
    """

    mean: float | None = None
    seeds: int = 0
    standard_error: float | None = None
    degrees_of_freedom: float = math.nan
    effective_n: float | None = None

    def limits(self, level: float = LEVEL) -> tuple[float, float] | tuple[None, None]:
        """The interval of the mean; two None where there is none."""
        if self.mean is None or self.standard_error is None:
            return None, None
        tail = (1 - level) / 2
        if self.effective_n is None:
            half = t_quantile(1 - tail, self.degrees_of_freedom) * self.standard_error if self.standard_error else 0.0
            return self.mean - half, self.mean + half
        right, wrong = self._counts()
        low = float(special.betaincinv(right, wrong + 1, tail)) if right else 0.0
        return low, float(special.betaincinv(right + 1, wrong, 1 - tail)) if wrong else 1.0

    def p_value(self, bound: float, alternative: Literal["greater", "less"]) -> float:
        """The p-value of the one-sided test that the truth is greater (less) than `bound`; 1 if the error is unknown.

        At a level of a, it is at most a where `limits(1 - 2a)` excludes the bound.
        """
        if self.mean is None or self.standard_error is None:
            return 1.0
        if math.isinf(bound):
            return float((bound > 0) == (alternative == "greater"))
        if self.effective_n is None:
            beyond = (self.mean - bound) * (1 if alternative == "greater" else -1)
            if not self.standard_error:
                return 0.0 if beyond > 0 else 1.0
            return float(special.stdtr(self.degrees_of_freedom, -beyond / self.standard_error))
        right, wrong = self._counts() if alternative == "greater" else self._counts()[::-1]
        share = min(max(bound if alternative == "greater" else 1 - bound, 0.0), 1.0)
        return float(special.betainc(right, wrong + 1, share)) if right else 1.0

    def p_within(self, margin: float) -> float:
        """The p-value of the two one-sided tests that the truth lies less than `margin` from 0 (the larger of both)."""
        return max(self.p_value(-margin, "greater"), self.p_value(margin, "less"))

    @property
    def detectable(self) -> float | None:
        """The smallest true difference from 0 that a two-sided test at 5% would have shown with power 0.8.

        The minimum detectable effect (Bloom 1995, Evaluation Review 19(5)), by the noncentral t distribution.
        """
        return None if self.standard_error is None else detectable(self.standard_error, self.degrees_of_freedom)

    def _counts(self) -> tuple[float, float]:
        return self.mean * self.effective_n, (1 - self.mean) * self.effective_n


def t_quantile(share: float, freedom: float) -> float:
    """A quantile of Student's t distribution."""
    return float(special.stdtrit(freedom, share))


def detectable(standard_error: float, freedom: float) -> float:
    """See `Estimate.detectable`."""
    return float(special.nctdtrinc(freedom, 1 - POWER, t_quantile((1 + LEVEL) / 2, freedom))) * standard_error


def half_width(sem, n):
    """Half the width of the 95% t interval of a mean, from its standard error over `n` values.

    Both may be arrays of one shape; of one value it is NaN.
    """
    return special.stdtrit(np.asarray(n) - 1, (1 + LEVEL) / 2) * sem
