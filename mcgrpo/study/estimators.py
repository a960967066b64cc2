"""What a study needs to know of the estimators it names; torch is imported for somebody's own only.

A name is one of `mcgrpo.estimators.ESTIMATORS`, or `module:attribute`, somebody's own: the module is looked for in the
folder that the study is run in, then as `import` does.
"""

from typing import Any

from mcgrpo.records import Run

EXTRA_ROLLOUTS: dict[str, int] = {
    "mean-std": 0,
    "mean": 0,
    "median-mad": 1,
    "median": 1,
    "mean-std-plus1": 1,
    "batch-std": 0,
    "rloo": 0,
    "reinforce++": 0,
    "quantile-0.4": 0,
    "james-stein": 0,
    "batch-mean": 0,
    "sign": 0,
    "maxrl": 0,
    "pods": 8,
}
"""Extra rollouts of every built-in estimator, as in `mcgrpo.estimators.ESTIMATORS`; a test compares the two."""
USED_BY: dict[str, tuple[str, ...]] = {
    "mad_zero": ("median-mad",),
    "advantage_epsilon": (
        "mean-std", "median-mad", "mean-std-plus1", "batch-std", "reinforce++", "quantile-0.4", "batch-mean",
        "maxrl", "pods",
    ),
}  # fmt: skip
"""Options of `training` that not every built-in estimator uses, and which do; a test compares them, too."""
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
    """Refuse an estimator that is not there, and options that it does not use; one of somebody's own is imported.

    Raises:
        ValueError: naming the key of `training`, the estimator and what is wrong.
    """
    if ":" in run.estimator:
        from mcgrpo.estimators import get_estimator

        get_estimator(run.estimator)
        return
    if run.estimator not in EXTRA_ROLLOUTS:
        raise ValueError(
            f"training.estimator: unknown estimator {run.estimator!r}; there are: {', '.join(EXTRA_ROLLOUTS)}, and "
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

    None where only somebody's own estimator says how many: its module is not imported.
    """
    extra = run.training.get("extra_rollouts")
    return EXTRA_ROLLOUTS.get(run.estimator) if extra is None and run.estimator else extra or 0


def drawn(run: Run) -> int:
    """Rollouts drawn for each prompt: G, plus extra ones; imports torch and the module of somebody's own estimator."""
    extra = planned_extra(run)
    if extra is None:
        from mcgrpo.estimators import get_estimator

        extra = get_estimator(run.estimator).extra_rollouts
    return run.num_generations + extra
