"""Options of `estimate`: their valid values, and the estimators that use them."""

import math

from mcgrpo.estimators.estimator import Estimator
from mcgrpo.estimators.registry import ESTIMATORS, get_estimator, part
from mcgrpo.estimators.table import NEVER_ZERO
from mcgrpo.estimators.zero_scale import MAD_ZERO


def check_options(
    *,
    mad_zero: str = "epsilon",
    max_advantage: float | None = None,
    extra_rollouts: int | None = None,
    epsilon: float | None = None,
    estimator: str | None = None,
) -> None:
    """Refuse invalid options of `estimate`, and those that the estimator, if it is given, does not use.

    Raises:
        ValueError: naming the option, its value and the valid ones, or the estimators that use it.
    """
    if mad_zero not in MAD_ZERO:
        raise ValueError(f"unknown mad_zero {mad_zero!r}; there are: {', '.join(MAD_ZERO)}")
    if max_advantage is not None and not max_advantage > 0:
        raise ValueError(f"max_advantage is None or more than 0, not {max_advantage!r}")
    if extra_rollouts is not None and (not isinstance(extra_rollouts, int) or extra_rollouts < 0):
        raise ValueError(f"extra_rollouts is None or a whole number of at least 0, not {extra_rollouts!r}")
    if epsilon is not None and not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon (a config's advantage_epsilon) is None or a finite number >= 0, not {epsilon!r}")
    if estimator is not None:
        rule = get_estimator(estimator)
        if mad_zero != "epsilon" and not uses_mad_zero(rule):
            used_by = ", ".join(name for name, each in ESTIMATORS.items() if uses_mad_zero(each))
            raise ValueError(
                f"estimator {estimator!r} does not use mad_zero={mad_zero!r}: its scale is not 0 where rewards differ, "
                f"or it has none; used by: {used_by}"
            )
        if epsilon not in (None, rule.epsilon) and rule.scale is None:
            used_by = ", ".join(name for name, each in ESTIMATORS.items() if each.scale)
            raise ValueError(
                f"estimator {estimator!r} does not use epsilon={epsilon!r} (a config's advantage_epsilon): it has no "
                f"scale; used by: {used_by}"
            )


def uses_mad_zero(rule: Estimator) -> bool:
    """Whether the scale of an estimator can be 0 where rewards differ; taken to be so of a scale that is not ours."""
    return rule.scale is not None and rule.scale not in map(part, NEVER_ZERO)
