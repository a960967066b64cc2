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
    """Import on first use: TRL takes seconds to import, and most modules here do not need it.

    Raises:
        ModuleNotFoundError: naming what to install, where TRL, its version or what it needs is not.
    """
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        needs = f"{name} needs a version of TRL that has the module {error.name}: docs/engines.md lists the versions"
        if not (error.name or "").startswith("trl."):
            needs = f"{name} needs the package {error.name!r}, which is not installed: pip install 'mcgrpo[train]'"
        raise ModuleNotFoundError(needs, name=error.name) from error
