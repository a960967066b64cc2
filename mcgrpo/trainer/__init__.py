"""TRL's `GRPOTrainer` with the advantage estimators of `mcgrpo.estimators`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an editor sees these, `__getattr__` imports them
    from mcgrpo.trainer.async_grpo import MCAsyncGRPOConfig, MCAsyncGRPOTrainer
    from mcgrpo.trainer.config import MCGRPOConfig
    from mcgrpo.trainer.trainer import MCGRPOTrainer

_MODULES = {
    "MCAsyncGRPOConfig": "mcgrpo.trainer.async_grpo",
    "MCAsyncGRPOTrainer": "mcgrpo.trainer.async_grpo",
    "MCGRPOConfig": "mcgrpo.trainer.config",
    "MCGRPOTrainer": "mcgrpo.trainer.trainer",
}

__all__ = ["MCAsyncGRPOConfig", "MCAsyncGRPOTrainer", "MCGRPOConfig", "MCGRPOTrainer"]


def __getattr__(name: str) -> Any:
    """Import on first use: TRL takes seconds to import, and most modules here do not need it."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
