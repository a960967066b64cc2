"""Selections: of several variants the best for a method, chosen on one half of the seeds and scored on the other.

The key `selections` of a study file names them, before it runs. The score of the best of several variants, chosen and
measured on the same seeds, is too high; this one is not (2-fold cross-validation). Its interval takes both choices as
given. A selection is a variant in every table: a seed has the score of the variant chosen for it. Pure functions.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from mcgrpo.analyse import scored
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.scored import Found, Scores
from mcgrpo.records import Plan


def planned_seeds(plan: Plan) -> dict[CellKey, set[int]]:
    """The planned seeds of every cell (`mcgrpo.analyse.scored.Planned`), with those of selections.

    A selection has cells where all of its variants are planned, at the seeds that all of them have.
    """
    seeds = scored.planned_seeds(plan)
    selected = {}
    for name, variants in plan.selections.items():
        for key in [key for key in seeds if key.variant == variants[0] and key.role != "flips"]:
            each = [seeds.get(key._replace(variant=variant), set()) for variant in variants]
            if all(each):
                selected[key._replace(variant=name)] = set.intersection(*each)
    return seeds | selected


def with_selected(plan: Plan, scores: Scores) -> Scores:
    """The scores, with those of selections by every measure."""
    found: Scores = defaultdict(dict)
    for name, variants in plan.selections.items():
        trained = {_trained(key) for key in scores if key.variant == variants[0]}
        chosen = {each: choices(plan, scores, each, variants) for each in trained}
        for key, seeds in scores.items():
            own = chosen.get(_trained(key), {}) if key.variant in variants and key.role != "flips" else {}
            found[key._replace(variant=name)] |= {
                seed: each for seed, each in seeds.items() if own.get(seed) == key.variant
            }
    return scores | {key: dict(sorted(seeds.items())) for key, seeds in found.items() if seeds}


def _trained(key: CellKey) -> CellKey:
    """What variants are selected for: a setting, G and method."""
    return key.of_training("")._replace(variant="")


def choices(plan: Plan, scores: Scores, trained: CellKey, variants: Sequence[str]) -> dict[int, str]:
    """Seed -> the variant that is best by the mean of the primary measure over the other half of the seeds.

    It is measured on the first benchmark in distribution. In ascending order, seeds belong to the one half and the
    other in turn. Of equal variants the first is chosen. Empty where the variants share fewer than two seeds.
    """
    benchmark = next((name for name, role in plan.benchmarks[trained.setting].items() if role == "in"), "")
    cell = trained._replace(role="in", benchmark=benchmark, measure=plan.primary.measure)
    measured: dict[str, dict[int, Found]] = {each: scores.get(cell._replace(variant=each), {}) for each in variants}
    seeds = sorted(set.intersection(*map(set, measured.values())))
    best: dict[int, str] = {}
    for own, other in ((seeds[::2], seeds[1::2]), (seeds[1::2], seeds[::2])):
        if own and other:
            top = max(variants, key=lambda name: fmean(measured[name][seed].value for seed in other))
            best |= dict.fromkeys(own, top)
    return best
