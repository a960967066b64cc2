"""TRL's `GRPOTrainer` with an advantage estimator of `mcgrpo.estimators`, for one's own training."""

from importlib import import_module
from typing import Any

_MODULES = {"MCGRPOConfig": "mcgrpo.trainer.config", "MCGRPOTrainer": "mcgrpo.trainer.trainer"}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import on use: TRL takes seconds, and most modules here do without."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
