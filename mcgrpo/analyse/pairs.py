"""The pairs of cells whose accuracies a study compares, each with its kind and its family.

A family is what a verdict is corrected within. It follows from the study file alone, before anything runs: that of the
primary comparisons with one baseline, or that of the first table that shows the pair (docs/read-the-report.md).
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.scored import Scores
from mcgrpo.records import Plan
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.primary import CONTROL, MEAN, METHOD
from mcgrpo.study.variants import COMPOSITE, DEFAULT, flips_of, is_rival

Kind = Literal["difference", "change", "same_rollouts", "control"]
"""From the method that a method is compared with, at the same G and variant; from the same method and G under the
variant `default`; from the mean-centred method at the G at which a training draws as many rollouts; of the study's
method from its control."""
AVERAGE = "average"
"""The family of the averages of primary comparisons, which have no verdict."""
LOSS_TABLES = {"grpo": "main", "dapo": "dapo", "dr_grpo": "dr_grpo"}
"""The table of the default variant in distribution, by loss."""


class Pair(NamedTuple):
    """A cell, and the one that it is compared with, which may have no score."""

    cell: CellKey
    other: CellKey
    kind: Kind
    family: str


def pairs(plan: Plan, planned: Mapping[CellKey, set[int]], scores: Scores) -> Iterator[Pair]:
    """Every pair of a study, by the accuracies that a report shows, in the order of its cells."""
    settings = list(plan.benchmarks)
    keys = [key._replace(measure=name) for key in planned if key.is_evaluation for name in plan.measures]
    for key in sorted(keys, key=lambda key: (settings.index(key.setting), key.order)):
        for kind, other in others(key, planned, scores).items():
            if other is not None:
                yield Pair(key, other, kind, primary_family(plan, key, other) or table_family(key, kind))


def others(key: CellKey, planned: Mapping[CellKey, set[int]], scores: Scores) -> dict[Kind, CellKey | None]:
    """The cells that a cell is compared with; None where the study plans none."""

    def there(other: CellKey | None) -> CellKey | None:
        return other if other and other.without_measure in planned else None

    is_method = (key.method, key.variant) == (METHOD, DEFAULT)
    return {
        "difference": there(key.baseline),
        "change": key.default,
        "same_rollouts": same_rollouts(key, planned, scores),
        "control": there(key._replace(method=CONTROL)) if is_method else None,
    }


def same_rollouts(key: CellKey, planned: Mapping[CellKey, set[int]], scores: Scores) -> CellKey | None:
    """The mean-centred cell of the default variant whose trainings draw as many rollouts, at another G or batch.

    Of GRPO's loss, in a setting that has a rival; None too if there is no such cell, and if rollouts are unknown.
    """
    rivalled = any(each.setting == key.setting and is_rival(each.variant) for each in planned)
    shown = is_rival(key.variant) or key.variant == DEFAULT
    if key.method == UNTRAINED or METHODS[key.method].loss_type != METHODS[MEAN].loss_type or not (rivalled and shown):
        return None
    own, rollouts = key.mean_centred, rollouts_of(key, scores)
    sizes = sorted({each.num_generations for each in planned})
    beside = (own._replace(num_generations=size) for size in sizes)
    equal = (each for each in beside if each in scores and each != own and rollouts_of(each, scores) == rollouts)
    return None if rollouts is None else next(equal, None)


def rollouts_of(key: CellKey, scores: Scores) -> float | None:
    """Rollouts of a training of the cell, the mean over its seeds."""
    seeds = scores.get(key.of_training("rollouts"), {})
    return sum(score.value for score in seeds.values()) / len(seeds) if seeds else None


def primary_family(plan: Plan, cell: CellKey, other: CellKey) -> str | None:
    """The family of a primary comparison."""
    is_measured = cell.measure == plan.primary.measure
    return f"primary, {other.method}" if is_measured and is_primary(plan, cell, other) else None


def is_primary(plan: Plan, cell: CellKey, other: CellKey) -> bool:
    """Whether a primary comparison is of these cells, by this accuracy or another one."""
    asked = [each for each in plan.primary.comparisons if cell.setting in each.settings]
    return (
        (cell.role, cell.method) == ("in", METHOD)
        and cell.variant == other.variant == DEFAULT
        and cell.num_generations == other.num_generations
        and any((each.baseline, each.num_generations) == (other.method, cell.num_generations) for each in asked)
    )


def table_family(cell: CellKey, kind: Kind) -> str:
    """The first table that shows a pair, as `mcgrpo.report.tables` names them."""
    if cell.role == "out":
        return "ood"
    if cell.variant == DEFAULT:
        if kind == "same_rollouts":
            return "rivals"
        return "control" if kind == "control" or cell.method == CONTROL else LOSS_TABLES[METHODS[cell.method].loss_type]
    if is_rival(cell.variant):
        return "rivals"
    if flips_of(cell.variant):
        return "injected-flips"
    return COMPOSITE if cell.variant == COMPOSITE else "variants"
