"""Advantage estimators: the rewards of a batch of groups in, advantages and the rows to train on out.

An estimator is a centre, a scale, a number of extra rollouts and a rule for the rows that are kept (`Estimator`). All
are pure functions of a float tensor `rewards` of shape (groups, drawn) in which NaN marks an unscorable rollout; this
package needs torch only. docs/estimators.md says which to choose, docs/your-own-estimator.md how to add one.

Of the `drawn` rollouts of each group the extra ones are dropped in this order: unscorable rollouts, then those of the
smallest |reward - centre|, and among equals the one drawn first (`keep_largest`). For the median of an odd group the
dropped row is therefore the pivot (advantage exactly 0); under ties, which are the rule with discrete rewards, it is
one of the tied medians: with beta = 0 every choice among them gives the same gradient (`ties="longest"` drops the
longest); with beta > 0 the dropped row takes its KL term along, so the choice has to be a fixed one. An even group,
from an odd G, has no pivot: its baseline lies between two rewards, and the dropped row has an advantage.
"""

from mcgrpo.estimators.estimation import Adjust, check_options, estimate
from mcgrpo.estimators.estimator import Estimator
from mcgrpo.estimators.keep import TIES, Ties, keep_largest, keep_largest_reward
from mcgrpo.estimators.registry import ESTIMATORS, bnpo, get_estimator, quantile, register
from mcgrpo.estimators.zero_scale import MAD_ZERO, MadZero

__all__ = [
    "ESTIMATORS",
    "MAD_ZERO",
    "TIES",
    "Adjust",
    "Estimator",
    "MadZero",
    "Ties",
    "bnpo",
    "check_options",
    "estimate",
    "get_estimator",
    "keep_largest",
    "keep_largest_reward",
    "quantile",
    "register",
]
