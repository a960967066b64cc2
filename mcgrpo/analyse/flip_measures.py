"""The names of sign-flip rates; `mcgrpo.analyse.sign_flips` says what their parts mean."""

import re
from typing import NamedTuple

BASELINES = ("mean", "median", "mean-plus1", "median-plus1")
ORACLES = ("oracle-mean", "oracle-median")
CONVENTIONS = ("strict", "zeros")
HOWS = ("exact", "sampled")
NAMES = "({})/({})/({})/k([1-9][0-9]*)/({})".format(*map("|".join, (BASELINES, ORACLES, CONVENTIONS, HOWS)))
"""What measures of sign flips are called: a pattern."""


class FlipMeasure(NamedTuple):
    """One reading of "sign-flip rate", in the order of its name's parts."""

    baseline: str
    oracle: str
    convention: str
    k: int
    how: str

    def __str__(self) -> str:
        return f"{self.baseline}/{self.oracle}/{self.convention}/k{self.k}/{self.how}"


def parse_measure(name: str) -> FlipMeasure:
    """The measure of a name, such as `mean/oracle-mean/strict/k2/exact`.

    Raises:
        ValueError: for another name.
    """
    if not (match := re.fullmatch(NAMES, name)):
        raise ValueError(f"{name!r} is no measure of sign flips, like 'mean/oracle-mean/strict/k2/exact'")
    baseline, oracle, convention, k, how = match.groups()
    return FlipMeasure(baseline, oracle, convention, int(k), how)
