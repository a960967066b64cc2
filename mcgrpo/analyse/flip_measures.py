"""The names of sign-flip rates; `mcgrpo.analyse.sign_flips` says what their parts mean."""

import re
import typing
from typing import Literal, NamedTuple

Baseline = Literal["mean", "median", "mean-plus1", "median-plus1"]
Oracle = Literal["oracle-mean", "oracle-median"]
Convention = Literal["strict", "zeros"]
How = Literal["exact", "sampled"]


class FlipMeasure(NamedTuple):
    """One reading of "sign-flip rate", in the order of its name's parts."""

    baseline: Baseline
    oracle: Oracle
    convention: Convention
    k: int
    how: How


BASELINES, ORACLES, CONVENTIONS, HOWS = (typing.get_args(kind) for kind in (Baseline, Oracle, Convention, How))
NAMES = "({})/({})/({})/k([1-9][0-9]*)/({})".format(*map("|".join, (BASELINES, ORACLES, CONVENTIONS, HOWS)))
"""What measures of sign flips are called: a pattern."""


def measure_name(baseline: Baseline, oracle: Oracle, convention: Convention, k: int, how: How) -> str:
    """The measure's name: `mean/oracle-mean/strict/k2/exact`."""
    return f"{baseline}/{oracle}/{convention}/k{k}/{how}"


def parse_measure(name: str) -> FlipMeasure:
    """The inverse of `measure_name`.

    Raises:
        ValueError: for another name.
    """
    if not (match := re.fullmatch(NAMES, name)):
        raise ValueError(f"{name!r} is no measure of sign flips, like 'mean/oracle-mean/strict/k2/exact'")
    baseline, oracle, convention, k, how = match.groups()
    return FlipMeasure(baseline, oracle, convention, int(k), how)
