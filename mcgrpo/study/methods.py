"""The methods of the study: each is a loss with an advantage estimator, and the method it is compared with.

Labels are the paper's. `baseline` is the mean-centred method that a median-centred one (or the control) is paired
with in every table. Standard library only.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """`loss_type` is TRL's name; `estimator` one of `mcgrpo.estimators`."""

    label: str
    loss_type: str
    estimator: str
    baseline: str | None = None


METHODS: dict[str, Method] = {
    "grpo": Method("GRPO", "grpo", "mean-std"),
    "mc-grpo": Method("MC-GRPO", "grpo", "median-mad", baseline="grpo"),
    "dapo": Method("DAPO", "dapo", "mean-std"),
    "mc-dapo": Method("MC-DAPO", "dapo", "median-mad", baseline="dapo"),
    "dr-grpo": Method("DR-GRPO", "dr_grpo", "mean"),
    "mc-dr-grpo": Method("MC-DR-GRPO", "dr_grpo", "median", baseline="dr-grpo"),
    "grpo-plus1": Method("GRPO+1", "grpo", "mean-std-plus1", baseline="grpo"),
}

UNTRAINED = "none"
"""The method of the untrained model: a run that is generated from and graded, but never trained."""


def label(method: str) -> str:
    """The printed name of a method."""
    return "untrained" if method == UNTRAINED else METHODS[method].label


def is_median(method: str) -> bool:
    """Whether a method centres rewards on their median."""
    return method in METHODS and METHODS[method].estimator.startswith("median")


def method_order(name: str) -> int:
    """The position of a method in every listing: the untrained model first, then as in `METHODS`.

    Raises:
        ValueError: for a method that is not known.
    """
    order = [UNTRAINED, *METHODS]
    if name not in order:
        raise ValueError(f"unknown method {name!r} (known: {', '.join(order)})")
    return order.index(name)
