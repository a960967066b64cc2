"""The smallest true gain in accuracy that a study would detect, before anything is trained.

A gain is the mean over seeds and problems of a paired difference: the sum of a seed effect, a problem effect and a
residual. Their variances give its standard error and degrees of freedom (`mcgrpo.analyse.crossed`), and these the
difference that a two-sided test at 5% detects with power 80% (`mcgrpo.analyse.stats.detectable`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tabulate import tabulate

from mcgrpo.analyse.crossed import total_variance
from mcgrpo.analyse.stats import detectable
from mcgrpo.study.methods import METHODS
from mcgrpo.study.plan import Config, evaluations, expand
from mcgrpo.study.rows import rows_of

BETWEEN_SEEDS, BETWEEN_PROBLEMS = 0.015, 0.08
"""Standard deviations that are assumed of a gain, given infinitely many problems, or seeds. For the gains of a finished
study, summary.csv has `difference_detectable`."""
DISAGREEMENT = 0.12
"""Share of greedy answers that are correct for one method and wrong for the other: the variance of the residual."""


class Effect(NamedTuple):
    """The detectable gain, a fraction, of the cells of a setting evaluated on a benchmark with that many seeds."""

    setting: str
    benchmark: str
    cells: int
    seeds: int
    problems: int | None
    gain: float | None


def smallest_gain(seeds: int, problems: int) -> float | None:
    """The detectable gain; None for one seed, which gives no variance between seeds, or without problems."""
    if seeds < 2 or problems < 1:
        return None
    residual = DISAGREEMENT / (seeds * problems)
    of_seeds = [(BETWEEN_SEEDS**2 / seeds + residual, seeds - 1)]
    of_problems = [(BETWEEN_PROBLEMS**2 / problems + residual, problems - 1)] if problems > 1 else [(0.0, 0)]
    rest = [(residual, (seeds - 1) * (problems - 1))] if problems > 1 else [(0.0, 0)]
    variance, freedom = total_variance(of_seeds, of_problems, rest)
    return detectable(variance**0.5, freedom)


def effects(config: Config) -> list[Effect]:
    """One for each setting, benchmark and number of seeds that gains are planned with."""
    planned = []
    for (setting, benchmark, seeds), cells in sorted(_gains(config).items()):
        problems = rows_of(config, benchmark).get("test")
        gain = smallest_gain(seeds, problems or 0)
        planned.append(Effect(setting, benchmark, cells, seeds, problems, gain))
    return planned


def _gains(config: Config) -> Counter[tuple[str, str, int]]:
    """(setting, benchmark, seeds) -> number of cells that are compared with their baseline there."""
    evaluated, seeds = evaluations(config), defaultdict(set)
    for name, entry in expand(config).items():
        for benchmark in evaluated[name]:
            run = entry.run
            seeds[run.setting, run.method, run.num_generations, run.variant, benchmark].add(run.seed)
    counts = Counter()
    for (setting, method, *rest), own in seeds.items():
        baseline = METHODS[method].baseline if method in METHODS else None
        if shared := own & seeds.get((setting, baseline, *rest), set()):
            counts[setting, rest[-1], len(shared)] += 1
    return counts


def listing(effects: Sequence[Effect]) -> Iterator[str]:
    """The effects as a table, and what they rest on."""
    if not effects:
        return
    shown = {each: "unknown" if each.gain is None else f"{100 * each.gain:.1f}" for each in effects}
    rows = [each._replace(problems=each.problems or "unknown", gain=gain) for each, gain in shown.items()]
    headers = ["setting", "benchmark", "cells", "seeds", "problems", "detectable, points"]
    yield "\nMinimum detectable gain in greedy accuracy (two-sided test at 5%, power 80%):"
    yield tabulate(rows, headers, "simple", disable_numparse=True, colalign=("left", "left", *["right"] * 4))
    yield (
        f"assumed: gains have a standard deviation of {100 * BETWEEN_SEEDS:g} points between seeds, "
        f"{100 * BETWEEN_PROBLEMS:g} between problems; two methods differ in {100 * DISAGREEMENT:g}% of answers"
    )
    if any(each.seeds == 1 for each in effects):
        yield "unknown: one seed gives no variance between seeds"
