"""The estimators by name; `register` and `module:attribute` add your own."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

import mcgrpo.estimators.baselines as baselines
import mcgrpo.estimators.keep as keep
import mcgrpo.estimators.scales as scales
import mcgrpo.estimators.statistics as statistics
from mcgrpo import user_defined
from mcgrpo.estimators.estimator import Estimator, Scale
from mcgrpo.estimators.table import BUILT_IN


def quantile(
    level: float,
    *,
    scale: Scale | None = scales.spread,
    extra_rollouts: int = 0,
    epsilon: float = 1e-4,
) -> Estimator:
    """An estimator whose centre is the `level` quantile: QAE, arXiv 2509.22611, Eq. 3.

    The scale is the standard deviation about the mean (`spread`), as in the paper; `std` and `mad` would be about the
    quantile. `quantile(0.5, scale=mad, extra_rollouts=1, epsilon=1e-3)` is `median-mad`.

    Raises:
        ValueError: for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a quantile's level is inside (0, 1), not {level!r}")
    source = f"QAE, arXiv 2509.22611, Eq. 3, K = {level:g}"
    return Estimator(partial(baselines.quantile_of, level=level), scale, extra_rollouts, epsilon, source)


def part(name: str | None) -> Callable[..., Tensor] | None:
    """A function that `mcgrpo.estimators.table` names."""
    module, _, function = (name or "").partition(".")
    return getattr(_MODULES[module], function) if name else None


_MODULES = {"baselines": baselines, "keep": keep, "scales": scales, "statistics": statistics}
ESTIMATORS: dict[str, Estimator] = {
    name: Estimator(**vars(row) | {key: part(getattr(row, key)) for key in ("centre", "scale", "keep")})
    for name, row in BUILT_IN.items()
}


def register(name: str, estimator: Estimator) -> Estimator:
    """Give an estimator a name in this process; returns the estimator.

    Raises:
        ValueError: for a name that is taken, empty or contains a colon (as in `module:attribute`).
        TypeError: for anything but an `Estimator`.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator {name!r} should be an mcgrpo.estimators.Estimator, not {estimator!r}")
    if not name or ":" in name:
        raise ValueError(f"{name!r} cannot name an estimator: a name is not empty and has no colon")
    if name in ESTIMATORS:
        raise ValueError(f"the name {name!r} is taken by another estimator ({ESTIMATORS[name].source or 'no source'})")
    ESTIMATORS[name] = estimator
    return estimator


def get_estimator(name: str) -> Estimator:
    """The estimator of that name: one of `ESTIMATORS`, or `module:attribute`, which is imported.

    The module is searched for on Python's path and in the current folder.

    Raises:
        ValueError: for what is no text, listing the known names, or naming the part of `module:attribute` that is
            missing, or what the module raised.
    """
    if not isinstance(name, str):
        raise ValueError(f"an estimator is given by its name, not {name!r}: register(name, estimator) gives it one")
    return user_defined.find(name, ESTIMATORS, Estimator)
