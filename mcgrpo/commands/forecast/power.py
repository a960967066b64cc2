"""With what power a study decides a claim, if the numbers that the paper prints are the truth.

The test is that of the claim's endpoint (`mcgrpo.report.claims.judge`), formed over the cells of one setting. Cells are
taken as independent between seeds, each with half the variance of a gain (`mcgrpo.commands.forecast.effects.Spread`).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from scipy import special

from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import Claim, Comparison
from mcgrpo.analyse.contrasts import endpoint, of_printed
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Cell, Gain
from mcgrpo.analyse.stats import LEVEL, detectable, t_quantile
from mcgrpo.commands.forecast.effects import Spread, variance_of
from mcgrpo.records import CELL
from mcgrpo.study.methods import UNTRAINED

MEASURE = "greedy"


class Planned(NamedTuple):
    """A claim as it would be decided in one setting.

    Args:
        weights: of the cells of its endpoint.
        value: of the endpoint by the paper's numbers, of this setting where it prints them, else over all settings;
            None where it prints none.
        problems: of each benchmark of the cells.
    """

    claim: Claim
    setting: str
    comparison: Comparison
    weights: Mapping[CellKey, float]
    value: float | None
    problems: Mapping[str, int]

    @property
    def cells(self) -> set[tuple[str, str, int, str]]:
        """The trained cells: setting, method, G, variant."""
        keys = [key for key in self.weights if key.method != UNTRAINED]
        return {(key.setting, key.method, key.num_generations, key.variant) for key in keys}

    def detectable(self, seeds: int, spread: Spread) -> float:
        """The smallest distance of the truth from a bound, in the claim's unit, that is seen with power 80%."""
        variance, freedom = self._variance(seeds, spread)
        return self.comparison.scale * detectable(variance**0.5, freedom)

    def power(self, seeds: int, spread: Spread) -> float:
        """The probability that the claim is decided as the paper's numbers decide it."""
        variance, freedom = self._variance(seeds, spread)
        error = self.comparison.scale * variance**0.5
        if self.claim.quantifier == "some" and not self.comparison.holds_at(self.value):
            return 0.0  # that it fails in one setting does not decide it
        low, high = self.comparison.low, self.comparison.high
        inside = [self.value - low, high - self.value]
        if not error:
            return float(0.0 not in inside)
        quantile = t_quantile((1 + LEVEL) / 2, freedom)
        seen = [1 - special.nctdtr(freedom, abs(each) / error, quantile) for each in inside if math.isfinite(each)]
        if not self.comparison.holds_at(self.value):
            return float(max(seen[i] for i, each in enumerate(filter(math.isfinite, inside)) if each <= 0))
        return float(max(0.0, sum(seen) - len(seen) + 1))

    def _variance(self, seeds: int, spread: Spread) -> tuple[float, float]:
        squares: dict[str, float] = defaultdict(float)
        for key, weight in self.weights.items():
            squares[key.benchmark] += weight**2 / 2
        return variance_of(seeds, [(square, self.problems[each]) for each, square in squares.items()], spread)


def planned(
    claims: Iterable[Claim], cells: Iterable[CellKey], published, problems: Mapping[str, int]
) -> tuple[list[Planned], dict[str, str]]:
    """Every claim that can be planned for, in each setting; and why others cannot, by claim.

    Args:
        claims: of `read_claims`.
        cells: what the study plans (keys without a measure).
        published: of `mcgrpo.analyse.published.as_cells`.
        problems: number of problems of each benchmark, of those that are known.
    """
    cells, plannable, left = list(cells), [], {}
    settings = sorted({cell.setting for cell in cells})
    scores = {cell._replace(measure=MEASURE): {} for cell in cells}
    for claim in claims:
        if claim.unjudged:
            left[claim.id] = claim.unjudged
            continue
        if {term.measure for comparison in claim.comparisons for term in comparison.terms} != {MEASURE}:
            left[claim.id] = "not of greedy accuracies: no spread is assumed of its measure"
            continue
        by_setting = []
        for setting in settings:
            end = endpoint(claim, scores, [cell for cell in cells if cell.setting == setting])
            if end and all(key.benchmark in problems for key in end[1]):
                by_setting.append(Planned(claim, setting, *end, _printed(claim, published, setting), problems))
        if not by_setting:
            left[claim.id] = "the study plans not all of its cells in any setting"
        elif all(each.value is None for each in by_setting):
            left[claim.id] = "the paper prints no numbers of it"
        plannable += [each for each in by_setting if each.value is not None]
    return plannable, left


def _printed(claim: Claim, published, setting: str) -> float | None:
    """The endpoint by the paper's numbers for the setting if it prints all, else over its settings."""
    for cells in (published[published.setting == setting], published):
        rows = of_printed([claim], cells)
        whole = {row.comparison for row in rows if row.kind == "single" and row.value is not None}
        if len(whole) == len(claim.comparisons):
            values = [row.value for row in rows if row.kind in ("primary", "setting")]
            return sum(values) / len(values)
    return None


def measured_spread(results: Path, otherwise: Spread) -> tuple[Spread, int]:
    """A finished study's spread of gains between seeds, pooled over its cells, and its degrees of freedom.

    The standard deviation of gains.csv holds a share of the residual, which is taken off. What gains.csv does not tell
    is as in `otherwise`; with no degree of freedom all is.
    """
    gains, cells = read_frame(results / "gains.csv", Gain), read_frame(results / "summary.csv", Cell)
    kept = (gains.kind == "difference") & (gains.role == "in") & (gains.measure == MEASURE)
    keys = [*CELL, "benchmark"]
    own = cells[(cells.role == "in") & (cells.measure == MEASURE)].set_index(keys).n
    total, freedom = 0.0, 0
    for key, group in gains[kept].groupby(keys):
        residual = otherwise.disagreement / own.loc[key]
        total += (len(group) - 1) * (group.gain.var(ddof=1) - residual) if len(group) > 1 else 0.0
        freedom += len(group) - 1
    return (otherwise._replace(seeds=max(total / freedom, 0.0) ** 0.5) if freedom else otherwise), freedom
