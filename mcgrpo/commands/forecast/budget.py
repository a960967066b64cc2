"""Which cells and seeds decide most of the paper's claims within a budget of hours.

Greedy: of the claims that are not decided yet, in any setting, the one is bought next that decides most claims for an
hour. A claim counts as decided where its power is at least `mcgrpo.analyse.stats.POWER`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcgrpo.analyse.stats import POWER
from mcgrpo.commands.forecast.effects import Spread
from mcgrpo.commands.forecast.power import Planned

CellName = tuple[str, str, int, str]
"""Setting, method, G, variant."""
MOST_SEEDS = 20


class Choice(NamedTuple):
    """What is chosen.

    Args:
        seeds: number of seeds of each cell, of those that are trained.
        decided: what it decides, each with the seeds that its cells share.
        hours: device-hours.
    """

    seeds: dict[CellName, int]
    decided: dict[str, tuple[Planned, int]]
    hours: float


def seeds_needed(planned: Planned, spread: Spread) -> int | None:
    """The fewest seeds that decide a claim; None where `MOST_SEEDS` do not."""
    return next((n for n in range(2, MOST_SEEDS + 1) if planned.power(n, spread) >= POWER), None)


def choose(
    planned: Sequence[Planned],
    needed: Mapping[tuple[str, str], int | None],
    hours: Mapping[CellName, float],
    budget: float,
) -> Choice:
    """The choice for a budget.

    Args:
        planned: of `mcgrpo.commands.forecast.power.planned`.
        needed: claim and setting -> `seeds_needed`.
        hours: device-hours of one seed of a cell; cells of unknown time are not there, and are not bought.
        budget: device-hours.
    """
    options = [(each, needed[each.claim.id, each.setting]) for each in planned]
    options = [(each, seeds) for each, seeds in options if seeds and each.cells <= hours.keys()]
    have: dict[CellName, int] = {}
    decided: dict[str, tuple[Planned, int]] = {}
    while True:
        best, best_rate = None, 0.0
        for each, seeds in options:
            if each.claim.id in decided:
                continue
            after = have | {cell: max(seeds, have.get(cell, 0)) for cell in each.cells}
            if (spent := cost(after, hours)) > budget:
                continue
            rate = len(_decided(after, options).keys() - decided.keys()) / max(spent - cost(have, hours), 1e-9)
            if rate > best_rate:
                best, best_rate = after, rate
        if best is None:
            return Choice(have, decided, cost(have, hours))
        have, decided = best, _decided(best, options) | decided


def cost(seeds: Mapping[CellName, int], hours: Mapping[CellName, float]) -> float:
    """Device-hours of this many seeds of each cell."""
    return sum(number * hours[cell] for cell, number in seeds.items())


def _decided(have: Mapping[CellName, int], options: Sequence[tuple[Planned, int]]) -> dict[str, tuple[Planned, int]]:
    decided: dict[str, tuple[Planned, int]] = {}
    for each, seeds in options:
        shared = min(have.get(cell, 0) for cell in each.cells)
        if shared >= seeds and shared > decided.get(each.claim.id, (each, 0))[1]:
            decided[each.claim.id] = (each, shared)
    return decided
