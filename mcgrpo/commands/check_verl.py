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
        ImportError: if verl is not there.
        RuntimeError: naming the plugin that it has not loaded, and the reason.
    """
    import verl

    for name, module in PLUGINS.items():
        if module not in sys.modules:
            raise RuntimeError(f"verl {verl.__version__} has not loaded its plugin {name}: {_reason(name)}")
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    loaded = [*ADV_ESTIMATOR_REGISTRY, *TRAINER_REGISTRY]
    return f"verl {verl.__version__} has loaded {', '.join(name for name in loaded if name.startswith('mcgrpo'))}"


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
    with command_line.errors(ImportError, RuntimeError):
        print(check())


if __name__ == "__main__":
    main()
