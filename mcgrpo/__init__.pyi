# What `__init__.py` imports on first use, for editors and type checkers.
from mcgrpo.estimators import ESTIMATORS, Estimator, estimate, register
from mcgrpo.trainer import MCGRPOConfig, MCGRPOTrainer

__version__: str
__all__ = ["ESTIMATORS", "Estimator", "MCGRPOConfig", "MCGRPOTrainer", "__version__", "estimate", "register"]
