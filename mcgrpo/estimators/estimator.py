"""What an estimator is: a centre, a scale, a number of extra rollouts and a rule for the rows to keep."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from mcgrpo.estimators.keep import keep_largest

Centre = Callable[..., Tensor]
"""rewards, and lengths where the estimator asks for them, each (groups, drawn) -> baselines that broadcast to that."""
Scale = Callable[[Tensor, Tensor], Tensor]
"""(rewards, their centre) -> what divides the deviations, (groups, 1) or (1, 1)."""
Keep = Callable[[Tensor, int, Tensor | None], Tensor]
"""(deviations, G, lengths that break ties or None) -> (groups, drawn) booleans, G true in each row."""


@dataclass(frozen=True)
class Estimator:
    """How rewards become advantages: (reward - centre) / (scale + epsilon).

    All three functions leave NaN (an unscorable rollout) out of what they compute.

    Args:
        centre: the baseline, of each group or of each rollout.
        scale: None leaves the centred rewards as they are.
        extra_rollouts: drawn for each prompt beside the G that are trained on; a caller may ask for another number.
        epsilon: added to the scale; in the unit of the rewards.
        source: where it is from.
        keep: which G rows of each group are trained on.
        needs_lengths: `centre` is called with the lengths of the completions too.
        keep_first: rows are chosen by their rewards, before anything else; centre and scale are of those rows only.
    """

    centre: Centre
    scale: Scale | None = None
    extra_rollouts: int = 0
    epsilon: float = 0.0
    source: str = ""
    keep: Keep = keep_largest
    needs_lengths: bool = False
    keep_first: bool = False
