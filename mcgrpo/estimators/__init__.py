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
from typing import Any

_MODULES = {
    "ESTIMATORS": "mcgrpo.estimators.registry",
    "MAD_ZERO": "mcgrpo.estimators.zero_scale",
    "Advantages": "mcgrpo.estimators.estimation",
    "Estimator": "mcgrpo.estimators.estimator",
    "MadZero": "mcgrpo.estimators.zero_scale",
    "Signal": "mcgrpo.estimators.signals",
    "check_options": "mcgrpo.estimators.options",
    "clamp_and_diagnose": "mcgrpo.estimators.estimation",
    "compute_estimate": "mcgrpo.estimators.estimation",
    "estimate": "mcgrpo.estimators.estimation",
    "get_estimator": "mcgrpo.estimators.registry",
    "keep_largest": "mcgrpo.estimators.keep",
    "quantile": "mcgrpo.estimators.registry",
    "register": "mcgrpo.estimators.registry",
    "signal": "mcgrpo.estimators.signals",
    "uses_mad_zero": "mcgrpo.estimators.options",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name on first use: it needs torch, which a study that reads `table` does without."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
