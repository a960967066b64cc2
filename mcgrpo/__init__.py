"""Median-centred GRPO for TRL: `from mcgrpo import MCGRPOConfig, MCGRPOTrainer`.

TRL and transformers are imported when one of their subclasses is asked for, not before.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

_HOMES = {
    "MCGRPOConfig": "mcgrpo.trainer",
    "MCGRPOTrainer": "mcgrpo.trainer",
    "ESTIMATORS": "mcgrpo.estimators",
    "Estimator": "mcgrpo.estimators",
    "estimate": "mcgrpo.estimators",
    "register": "mcgrpo.estimators",
}
__all__ = ["ESTIMATORS", "Estimator", "MCGRPOConfig", "MCGRPOTrainer", "__version__", "estimate", "register"]


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mcgrpo' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
