"""TRL's `GRPOTrainer` with the advantage estimators of `mcgrpo.estimators`."""

from importlib import import_module
from typing import Any

_MODULES = {
    "MCAsyncGRPOConfig": "mcgrpo.trainer.async_grpo",
    "MCAsyncGRPOTrainer": "mcgrpo.trainer.async_grpo",
    "MCGRPOConfig": "mcgrpo.trainer.config",
    "MCGRPOTrainer": "mcgrpo.trainer.trainer",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    """Import on first use: TRL takes seconds to import, and most modules here do not need it."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
