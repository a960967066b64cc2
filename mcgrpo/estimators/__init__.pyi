# What `__init__.py` imports on first use, for editors and type checkers.
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
