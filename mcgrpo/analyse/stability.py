"""Cells beside others that draw as many rollouts, and seeds that end far below the rest."""

from statistics import median

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.scored import Planned, Scores
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.variants import is_rival

COLLAPSE = 0.1
"""A seed has collapsed if its accuracy is this far, 10 points, below the median seed of the mean-centred method.

That is the method of the same loss at the same G, under the same variant, or under the default if that is all there is
or the variant is another estimator (a rival).
"""


def same_rollouts(key: CellKey, scores: Scores, planned: Planned) -> CellKey | None:
    """The mean-centred cell of the default variant whose trainings draw as many rollouts, at another G or batch.

    None for the untrained model, if there is no such cell, and if rollouts are unknown.
    """
    rollouts = _rollouts(key, scores)
    if key.method == UNTRAINED or rollouts is None:
        return None
    own = key.mean_centred
    others = (own._replace(num_generations=size) for size in sorted({each.num_generations for each in planned}))
    equal = (other for other in others if other in scores and other != own and _rollouts(other, scores) == rollouts)
    return next(equal, None)


def _rollouts(key: CellKey, scores: Scores) -> float | None:
    """Rollouts of a training of the cell, the mean over its seeds."""
    seeds = scores.get(key.of_training("rollouts"), {})
    return sum(score.value for score in seeds.values()) / len(seeds) if seeds else None


def collapsed(key: CellKey, scores: Scores) -> float | None:
    """The share of seeds that have collapsed, see `COLLAPSE`; None without a seed, or without one to compare with."""
    seeds = scores.get(key, {})
    own = key.mean_centred
    same = own if is_rival(key.variant) else own._replace(variant=key.variant)
    beside = scores.get(same) or scores.get(own, {})
    if key.method == UNTRAINED or not seeds or not beside:
        return None
    usual = median(score.value for score in beside.values())
    return sum(score.value < usual - COLLAPSE for score in seeds.values()) / len(seeds)
