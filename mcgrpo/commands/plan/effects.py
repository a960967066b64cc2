"""The smallest true gain in accuracy that a study would detect, before anything is trained.

A gain is the mean over seeds and problems of a paired difference: the sum of a seed effect, a problem effect and a
residual. Their variances give its standard error and degrees of freedom (`mcgrpo.analyse.crossed`), and these the
difference that a two-sided test at 5% detects with power 80% (`mcgrpo.analyse.stats.detectable`).
"""

from collections import Counter
from collections.abc import Iterator

from tabulate import tabulate

from mcgrpo.analyse.crossed import total_variance
from mcgrpo.analyse.scored import planned_seeds
from mcgrpo.analyse.stats import detectable
from mcgrpo.records import Plan
from mcgrpo.study.plan import Config, plan_of
from mcgrpo.study.rows import rows_of

BETWEEN_SEEDS, BETWEEN_PROBLEMS = 0.015, 0.08
"""Standard deviations that are assumed of a gain, given infinitely many problems, or seeds. For the comparisons of a
finished study, comparisons.csv has `detectable`."""
DISAGREEMENT, SAMPLED = 0.12, 0.25
"""Share of problems that a greedy or a sampled answer of one method gets right and one of the other wrong, or the
reverse: over the number of answers to a problem, the variance of the residual. Sampled, it was 0.10 in the reference
study and 0.25 in that of SmolLM2."""


def smallest_gain(seeds: int, problems: int, samples: int = 0) -> float | None:
    """The detectable gain; None for one seed, which gives no variance between seeds, or without problems.

    Args:
        seeds, problems: that gains are means over.
        samples: answers to each problem; 0 for one that is decoded greedily.
    """
    if seeds < 2 or problems < 1:
        return None
    residual = (SAMPLED / samples if samples else DISAGREEMENT) / (seeds * problems)
    of_seeds = [(BETWEEN_SEEDS**2 / seeds + residual, seeds - 1)]
    of_problems = [(BETWEEN_PROBLEMS**2 / problems + residual, problems - 1)] if problems > 1 else [(0.0, 0)]
    rest = [(residual, (seeds - 1) * (problems - 1))] if problems > 1 else [(0.0, 0)]
    variance, freedom = total_variance(of_seeds, of_problems, rest)
    return detectable(variance**0.5, freedom)


def gains(plan: Plan) -> Counter[tuple[str, str, int]]:
    """(setting, benchmark, seeds) -> number of cells that are compared with their baseline there."""
    seeds, counts = planned_seeds(plan), Counter()
    for key, own in seeds.items():
        if key.is_evaluation and (shared := own & seeds.get(key.baseline, set())):
            counts[key.setting, key.benchmark, len(shared)] += 1
    return counts


def listing(config: Config) -> Iterator[str]:
    """The detectable gain by the study's primary measure, for each setting, benchmark and number of seeds."""
    plan, rows = plan_of(config), []
    measure = plan.primary.measure
    samples = 0 if measure == "greedy" else config["evaluation"]["samples"]
    sort, differ = ("sampled", SAMPLED) if samples else ("greedy", DISAGREEMENT)
    for (setting, benchmark, seeds), cells in sorted(gains(plan).items()):
        problems = rows_of(config, benchmark).get("test")
        gain = smallest_gain(seeds, problems or 0, samples)
        told = "unknown" if gain is None else f"{100 * gain:.1f}"
        rows.append((setting, benchmark, cells, seeds, problems or "unknown", told))
    if not rows:
        return
    headers = ["setting", "benchmark", "cells", "seeds", "problems", "detectable, points"]
    yield f"\nMinimum detectable gain in {sort} accuracy ({measure}; two-sided test at 5%, power 80%):"
    yield tabulate(rows, headers, "simple", disable_numparse=True, colalign=("left", "left", *["right"] * 4))
    yield (
        f"assumed: gains have a standard deviation of {100 * BETWEEN_SEEDS:g} points between seeds, "
        f"{100 * BETWEEN_PROBLEMS:g} between problems; two methods differ in {100 * differ:g}% of {sort} answers"
    )
    if any(seeds == 1 for _, _, _, seeds, *_ in rows):
        yield "unknown: one seed gives no variance between seeds"
