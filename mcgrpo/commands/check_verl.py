"""Say whether verl has loaded the estimators and trainers of mcgrpo: if it cannot, verl is silent about it."""

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points

from mcgrpo import command_line

PLUGINS = {"mcgrpo": "mcgrpo.engines.verl", "mcgrpo_trainers": "mcgrpo.engines.verl_trainers"}


def check() -> str:
    """What verl has loaded, in one sentence.

    Raises:
        RuntimeError: naming the plugin and the reason, if verl is not there or has not loaded both.
    """
    try:
        import verl
    except ImportError as error:
        raise RuntimeError(f"verl cannot be imported: {error}") from error
    for name, module in PLUGINS.items():
        if module not in sys.modules:
            raise RuntimeError(f"verl {verl.__version__} has not loaded its plugin {name}: {_reason(name)}")
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    estimators = [name for name in ADV_ESTIMATOR_REGISTRY if name.startswith("mcgrpo:")]
    trainers = [name for name in TRAINER_REGISTRY if name.startswith("mcgrpo_")]
    return f"verl {verl.__version__} has loaded {', '.join(estimators)} and the trainers {', '.join(trainers)}"


def _reason(name: str) -> str:
    """Why verl has not loaded that plugin."""
    policy = os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto").strip()
    if policy.lower() != "auto" and name not in (each.strip() for each in policy.lower().split(",")):
        return f"VERL_USE_EXTERNAL_PLUGINS={policy} leaves it out"
    if not entry_points(group="verl.plugins", name=name):
        return "mcgrpo is not installed in this environment (it may only be on the path)"
    try:
        import_module(PLUGINS[name])
    except Exception as error:  # whatever it is, verl has hidden it
        return f"{type(error).__name__}: {error}"
    return "it can be loaded now, but not when verl was imported"


def main() -> None:
    """Print what verl has loaded, or exit with the reason why not."""
    command_line.parser(__doc__).parse_args()
    try:
        print(check())
    except RuntimeError as error:
        sys.exit(f"mcgrpo check-verl: {error}")


if __name__ == "__main__":
    main()
