# What `__init__.py` imports on first use, for editors and type checkers.
from mcgrpo.trainer.async_grpo import MCAsyncGRPOConfig, MCAsyncGRPOTrainer
from mcgrpo.trainer.config import MCGRPOConfig
from mcgrpo.trainer.trainer import MCGRPOTrainer

__all__ = ["MCAsyncGRPOConfig", "MCAsyncGRPOTrainer", "MCGRPOConfig", "MCGRPOTrainer"]
