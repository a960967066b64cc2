"""What a study needs to know of the estimators it names; torch is imported for user-defined ones only.

A name is one of `mcgrpo.estimators.ESTIMATORS`, or `module:attribute`, a user-defined one: the module is looked for in
the folder that the study is run in, then as `import` does.
"""

from typing import Any

from mcgrpo.estimators.table import BUILT_IN
from mcgrpo.records import Run

USED_BY = {
    "mad_zero": [name for name, built_in in BUILT_IN.items() if built_in.uses_mad_zero],
    "advantage_epsilon": [name for name, built_in in BUILT_IN.items() if built_in.scale],
}
"""Options of `training` that not every built-in estimator uses, and which do."""
UNSET = (None, "epsilon", 0.0)
"""Values of these options that estimators without them have."""
OPTIONS = {
    "extra_rollouts": "extra_rollouts",
    "advantage_epsilon": "epsilon",
    "mad_zero": "mad_zero",
    "max_advantage": "max_advantage",
}
"""Options of an estimator in `training`, and their names in `mcgrpo.estimators.estimate`."""


def check_estimator(run: Run) -> None:
    """Refuse an estimator that is not there, and options that it does not use; a user-defined one is imported.

    Raises:
        ValueError: naming the key of `training`, the estimator and what is wrong.
    """
    if ":" in run.estimator:
        from mcgrpo.estimators import get_estimator

        get_estimator(run.estimator)
        return
    if run.estimator not in BUILT_IN:
        raise ValueError(
            f"training.estimator: unknown estimator {run.estimator!r}; there are: {', '.join(BUILT_IN)}, and "
            "module:attribute for your own"
        )
    for option, names in USED_BY.items():
        if (value := run.training.get(option)) not in UNSET and run.estimator not in names:
            raise ValueError(
                f"training.{option}: estimator {run.estimator!r} does not use {option}={value!r}; used by: "
                f"{', '.join(names)}"
            )


def options_of(run: Run) -> dict[str, Any]:
    """The options that a run gives its estimator, by their names in `mcgrpo.estimators.estimate`."""
    return {name: run.training[key] for key, name in OPTIONS.items() if run.training.get(key) is not None}


def planned_extra(run: Run) -> int | None:
    """Rollouts drawn for each prompt beside G: `extra_rollouts` of the run, or else of its estimator.

    None where only a user-defined estimator says how many: its module is not imported.
    """
    extra = run.training.get("extra_rollouts")
    if extra is None and run.estimator:
        return BUILT_IN[run.estimator].extra_rollouts if run.estimator in BUILT_IN else None
    return extra or 0


def drawn(run: Run) -> int:
    """Rollouts drawn for each prompt: G, plus extra ones; imports torch and the module of a user-defined estimator."""
    extra = planned_extra(run)
    if extra is None:
        from mcgrpo.estimators import get_estimator

        extra = get_estimator(run.estimator).extra_rollouts
    return run.num_generations + extra
