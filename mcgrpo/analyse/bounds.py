"""Tests of an estimate against the bounds of a comparison: that it lies within them, outside, or close to 0."""

import math

import numpy as np

from mcgrpo.analyse.claims import Comparison
from mcgrpo.analyse.stats import Estimate
from mcgrpo.grade.rewards import REWARDS

DIGITS = 9
"""Decimals of a value: the difference of two printed numbers is exact at these."""
ALL_RIGHT = {"points": 1.0, **dict.fromkeys(("reward", "reward_first", "reward_unsteadiness"), REWARDS["correct"])}
"""By unit of a claim, what right answers to all problems amount to. The margin of equivalence is a share of it."""


def p_values(comparison: Comparison, result: Estimate, certain: bool = False) -> tuple[float, float]:
    """One-sided: of the test that the truth lies between the bounds, and of the test that it lies outside.

    A number that is taken as it stands, or that all seeds agree on, is on one side for certain.
    """
    if certain or result.error == 0:
        inside = comparison.holds_at(in_unit(comparison, result.mean))
        return (0.0, 1.0) if inside else (1.0, 0.0)
    low, high = (from_unit(comparison, bound) for bound in (comparison.low, comparison.high))
    holds = max(result.p_value(low, "greater"), result.p_value(high, "less"))
    return holds, min(result.p_value(low, "less"), result.p_value(high, "greater"))


def p_equivalent(comparison: Comparison, result: Estimate, margin: float) -> float | None:
    """Of the two one-sided tests that the truth lies less than `margin` from a bound of 0 (the larger p-value).

    None where the claim is not that a difference (of accuracies, flip rates or rewards) is above or below 0. In
    rewards, the margin is that of the accuracy times the reward of a right answer (of weight 1).
    """
    if comparison.unit not in ALL_RIGHT or {comparison.low, comparison.high} not in ({0, math.inf}, {-math.inf, 0}):
        return None
    margin *= ALL_RIGHT[comparison.unit]
    return max(result.p_value(-margin, "greater"), result.p_value(margin, "less"))


def in_unit(comparison: Comparison, number: float | None) -> float | None:
    """An estimate in the unit of the claim."""
    if number is None:
        return None
    return round(math.exp(number) if comparison.is_ratio else comparison.scale * number, DIGITS)


def from_unit(comparison: Comparison, bound: float) -> float:
    """A bound of the claim as an estimate is counted: a fraction, or the logarithm of a ratio."""
    if comparison.is_ratio:
        return float(np.log(bound)) if bound > 0 else -math.inf
    return bound / comparison.scale
