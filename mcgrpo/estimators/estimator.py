"""What an estimator is: a centre, a scale, a number of extra rollouts and a rule for the rows to keep."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from mcgrpo.estimators.keep import keep_largest

Centre = Callable[..., Tensor]
"""rewards, and lengths where the estimator asks for them, each (groups, drawn) -> baselines that broadcast to that."""
Scale = Callable[[Tensor, Tensor], Tensor]
"""(rewards, the estimator's centre of them) -> what divides the deviations, (groups, 1) or (1, 1)."""
Keep = Callable[[Tensor, Tensor, int, Tensor | None], Tensor]
"""(rewards, the estimator's centre of them, G, lengths that break ties or None) -> rows, see `Estimator`."""


@dataclass(frozen=True)
class Estimator:
    """How rewards become advantages: (reward - centre) / (scale + epsilon).

    All three functions leave NaN (an unscorable rollout) out of what they compute.

    Args:
        centre: the baseline, of each group or of each rollout.
        scale: None leaves the centred rewards as they are. `group_statistics.std` and `mad` are about the centre,
            `scales.spread` is the standard deviation about the mean whatever the centre.
        extra_rollouts: drawn for each prompt beside the G that are trained on; a caller may ask for another number.
        epsilon: added to the scale; in the unit of the rewards. With 0, a group whose scale is 0 though its rewards
            differ is an error, unless `mad_zero` says what divides it.
        source: where it is from.
        keep: which G rows of each group are trained on. Always called with four arguments, by position: the rewards
            (groups, drawn), NaN where unscorable; the centre of all of them; G; and the lengths of the completions
            (groups, drawn), None unless `ties="longest"`. Returns booleans (groups, drawn), exactly G of them true in
            each group.
        needs_lengths: `centre` is called with the lengths of the completions too.
        centre_of_kept: advantages are about the centre of the kept rows alone, and their scale is of those rows alone.
    """

    centre: Centre
    scale: Scale | None = None
    extra_rollouts: int = 0
    epsilon: float = 0.0
    source: str = ""
    keep: Keep = keep_largest
    needs_lengths: bool = False
    centre_of_kept: bool = False
