"""The estimators by name; `register` and `module:attribute` add your own."""

import sys
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path

from mcgrpo.estimators.baselines import (
    batch_mean,
    james_stein,
    leave_one_out,
    quantile_of,
    sign_baseline,
)
from mcgrpo.estimators.estimator import Estimator, Scale
from mcgrpo.estimators.keep import keep_max_variance
from mcgrpo.estimators.scales import batch_deviation, batch_std, positive_mean, spread
from mcgrpo.estimators.statistics import mad, mean, median, std


def quantile(
    level: float,
    *,
    scale: Scale | None = spread,
    extra_rollouts: int = 0,
    epsilon: float = 1e-4,
) -> Estimator:
    """An estimator whose centre is the `level` quantile: QAE, arXiv 2509.22611, Eq. 3.

    The scale is the standard deviation about the mean (`spread`), as in the paper; `std` and `mad` would be about the
    quantile. `quantile(0.5, scale=mad, extra_rollouts=1, epsilon=1e-3)` is `median-mad`.

    Raises:
        ValueError: for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a quantile's level is inside (0, 1), not {level!r}")
    source = f"QAE, arXiv 2509.22611, Eq. 3, K = {level:g}"
    return Estimator(partial(quantile_of, level=level), scale, extra_rollouts, epsilon, source)


ESTIMATORS: dict[str, Estimator] = {
    "mean-std": Estimator(mean, std, 0, 1e-4, "GRPO, arXiv 2402.03300; epsilon as in TRL's GRPOTrainer"),
    "mean": Estimator(mean, None, 0, 0.0, "Dr. GRPO, arXiv 2503.20783: no division by the standard deviation"),
    "median-mad": Estimator(median, mad, 1, 1e-3, "MC-GRPO, Eqs. 2-4; epsilon as in the authors' release"),
    "median": Estimator(median, None, 1, 0.0, "MC-GRPO, Eq. 2 in Dr. GRPO: no normalisation (appendix A)"),
    "mean-std-plus1": Estimator(mean, std, 1, 1e-4, "MC-GRPO, extra-sampling control: smallest |A| dropped"),
    "batch-std": Estimator(mean, batch_std, 0, 1e-4, "arXiv 2508.08221; TRL's scale_rewards='batch'"),
    "rloo": Estimator(leave_one_out, None, 0, 0.0, "RLOO, arXiv 2402.14740"),
    "reinforce++": Estimator(mean, batch_deviation, 0, 1e-4, "REINFORCE++ with a group baseline, arXiv 2501.03262"),
    "quantile-0.4": quantile(0.4),
    "james-stein": Estimator(james_stein, None, 0, 0.0, "arXiv 2511.03710, two-level leave-one-out shrinkage"),
    "batch-mean": Estimator(batch_mean, batch_std, 0, 1e-4, "REINFORCE++, arXiv 2501.03262; OpenRLHF's reinforce"),
    "sign": Estimator(sign_baseline, None, 0, 0.0, "arXiv 2605.07689: a fixed reference, A = 2 r - 1"),
    "maxrl": Estimator(mean, positive_mean, 0, 0.0, "MaxRL, arXiv 2602.02710"),
    "pods": Estimator(
        mean, std, 8, 1e-4, "PODS, arXiv 2504.13818: GRPO on the kept rows", keep_max_variance, centre_of_kept=True
    ),
}


def register(name: str, estimator: Estimator) -> Estimator:
    """Give an estimator a name in this process; returns the estimator.

    Raises:
        ValueError: for a name that is taken, empty or contains a colon (as in `module:attribute`).
        TypeError: for anything but an `Estimator`.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator {name!r} should be an mcgrpo.estimators.Estimator, not {estimator!r}")
    if not name or ":" in name:
        raise ValueError(f"{name!r} cannot name an estimator: a name is not empty and has no colon")
    if name in ESTIMATORS:
        raise ValueError(f"the name {name!r} is taken by another estimator ({ESTIMATORS[name].source or 'no source'})")
    ESTIMATORS[name] = estimator
    return estimator


def get_estimator(name: str) -> Estimator:
    """The estimator of that name: one of `ESTIMATORS`, or `module:attribute`, which is imported.

    The module is searched for on Python's path and in the current folder.

    Raises:
        ValueError: for what is no text, listing the known names, or naming the part of `module:attribute` that is
            missing, or what the module raised.
    """
    if not isinstance(name, str):
        raise ValueError(f"an estimator is given by its name, not {name!r}: register(name, estimator) gives it one")
    if name in ESTIMATORS:
        return ESTIMATORS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(
            f"unknown estimator {name!r}; there are: {', '.join(ESTIMATORS)}, and module:attribute for your own"
        )
    here = str(Path.cwd())
    try:
        with ExitStack() as at_end:
            if here not in sys.path and "" not in sys.path:  # it is not on the path of an installed command
                sys.path.append(here)
                at_end.callback(sys.path.remove, here)
            estimator = getattr(import_module(module), attribute, None)
    except (Exception, SystemExit) as error:  # somebody's own code can raise anything
        why = error if isinstance(error, ImportError | ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"estimator {name!r}: cannot import {module!r}: {why}") from error
    if not isinstance(estimator, Estimator):
        what = "there is none" if estimator is None else f"it is {estimator!r}"
        raise ValueError(f"estimator {name!r}: {attribute!r} of {module} should be an Estimator, but {what}")
    return estimator
