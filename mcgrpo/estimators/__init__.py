"""Advantage estimators: from the rewards of a batch of groups to advantages and the rows to train on.

An estimator is a centre, a scale, a number of extra rollouts and a rule for the rows to keep (`Estimator`). All are
pure functions of a float tensor `rewards` of shape (groups, drawn), in which NaN marks an unscorable rollout. This
package depends on torch only. docs/estimators.md compares the estimators and adds one.

The extra rollouts of each group are dropped in this order: unscorable rollouts, then those with the smallest
|reward - centre|, among equals the first drawn (`keep_largest`). For the median of an odd group the dropped row is
the pivot, whose advantage is exactly 0. With discrete rewards several rows often equal the median. The KL term and the
tokens of the dropped row are lost with it, so the choice must not depend on the completion. An even group (an odd G)
has no pivot: its median lies between two rewards, and the dropped row has an advantage.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcgrpo.estimators.estimation import Advantages, clamp_and_diagnose, compute_estimate, estimate
    from mcgrpo.estimators.estimator import Estimator
    from mcgrpo.estimators.keep import keep_largest
    from mcgrpo.estimators.options import check_options, uses_mad_zero
    from mcgrpo.estimators.registry import ESTIMATORS, get_estimator, quantile, register
    from mcgrpo.estimators.signals import Signal, signal
    from mcgrpo.estimators.zero_scale import MAD_ZERO, MadZero

__all__ = [
    "ESTIMATORS",
    "MAD_ZERO",
    "Advantages",
    "Estimator",
    "MadZero",
    "Signal",
    "check_options",
    "clamp_and_diagnose",
    "compute_estimate",
    "estimate",
    "get_estimator",
    "keep_largest",
    "quantile",
    "register",
    "signal",
    "uses_mad_zero",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: it needs torch, which a study that reads `table` does without."""
    if name in __all__:
        for module in ("registry", "keep", "zero_scale", "options", "estimation", "signals"):
            if hasattr(found := import_module(f"{__name__}.{module}"), name):
                return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
