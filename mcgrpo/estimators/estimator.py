"""`Estimator`: a centre, a scale, a number of extra rollouts and a rule for the rows to keep."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from mcgrpo.estimators.keep import keep_largest

Centre = Callable[[Tensor], Tensor]
"""rewards (groups, drawn) -> baselines, broadcast to that."""
Scale = Callable[[Tensor, Tensor], Tensor]
"""(rewards, their centre) -> the divisor of the deviations, (groups, 1) or (1, 1)."""
Keep = Callable[[Tensor, Tensor, int], Tensor]
"""(rewards, their centre, G) -> booleans, see `Estimator`."""


@dataclass(frozen=True)
class Estimator:
    """How rewards become advantages: (reward - centre) / (scale + epsilon).

    All three functions ignore NaN (an unscorable rollout).

    Args:
        centre: the baseline of each group or of each rollout.
        scale: None for no division. `statistics.std` and `mad` are about the centre, `scales.spread` is the standard
            deviation about the mean whatever the centre.
        extra_rollouts: drawn for each prompt beside the G that are trained on; a caller may ask for another number.
        epsilon: added to the scale; in the unit of the rewards. With 0, a group whose scale is 0 though its rewards
            differ is an error, unless `mad_zero` gives another divisor.
        source: the paper or library it is from.
        keep: which G rows of each group are trained on. Called with the rewards (groups, drawn), NaN where unscorable,
            their centre, and G. Returns booleans (groups, drawn), exactly G of them true in each group.
        centre_of_kept: whether centre and scale are recomputed from the kept rows alone.
    """

    centre: Centre
    scale: Scale | None = None
    extra_rollouts: int = 0
    epsilon: float = 0.0
    source: str = ""
    keep: Keep = keep_largest
    centre_of_kept: bool = False
