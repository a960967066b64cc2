"""Weighted sums of cells, per seed and problem; and the comparisons of claims.yaml as such sums.

A gain is written as its two cells, so every comparison is a weighted sum of cells. Cells of one setting are paired: by
seed, over the seeds that all of them have, and by problem. Where they share fewer than two of several seeds, their
variances add up (Welch's test). Trainings of different settings are independent, and share problems where they are
evaluated on the same ones. A ratio is the difference of logarithms, by seed. One seed of a training says nothing of
others: a comparison with a cell of one seed has no test.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from mcgrpo.analyse import scored
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.claims import Claim, ClaimError, Comparison, Term, average
from mcgrpo.analyse.crossed import contrast
from mcgrpo.analyse.records import GPUS, Contrast
from mcgrpo.analyse.scored import Found, Scores
from mcgrpo.analyse.stats import DIGITS, Estimate
from mcgrpo.analyse.verdicts import TAIL, ClaimVerdict, verdicts
from mcgrpo.grade.rewards import REWARDS
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import EQUIVALENCE_MARGIN

Scope = tuple[str | None, str | None]
"""A setting and a benchmark; None for an average over them."""
Weights = Mapping[CellKey, float]
BESIDE = TAIL / 2
"""Level of all single comparisons together, which are tested in addition to their average, the endpoint."""
ON_CPU = "times are judged on GPUs"
"""Why a time is not judged: jobs on a CPU share its cores, so their times depend on what else ran."""
ALL_RIGHT = {"points": 1.0, **dict.fromkeys(("reward", "reward_first"), REWARDS["correct"])}
"""By unit of a claim, what right answers to all problems amount to. The margin of equivalence is a share of it."""


class Single(NamedTuple):
    """A comparison of a claim in one scope: the weights of its cells, None where one is not there."""

    comparison: Comparison
    scope: Scope
    weights: Weights | None


def contrasts(
    claims: Iterable[Claim],
    scores: Scores,
    planned: Iterable[CellKey],
    printed: bool = False,
    margin: float = EQUIVALENCE_MARGIN,
) -> list[Contrast]:
    """The rows of claims in comparisons.csv, each judged within its claim.

    Args:
        claims: of `read_claims`.
        scores: by cell and seed.
        planned: the cells and benchmarks that there are to be (keys without a measure).
        printed: whether the scores are numbers that the paper prints, taken as they stand.
        margin: the study's `equivalence_margin`.
    """
    study = _Study(scores, sorted(planned), printed, margin)
    return [row for claim in claims if not claim.unjudged for row in study.rows(claim)]


def of_printed(claims: Iterable[Claim], cells: Mapping[CellKey, float]) -> list[Contrast]:
    """The same for the paper's numbers, given by `mcgrpo.analyse.published.as_cells`."""
    scores = {key: {0: Found(value, 1)} for key, value in cells.items()}
    # The paper prints totals. Trainings that are compared have as many steps, so the ratio is that of a step
    scores |= {key._replace(measure="seconds_per_step"): v for key, v in scores.items() if key.measure == "seconds"}
    return contrasts(claims, scores, {key.without_measure for key in scores}, printed=True)


@dataclass(frozen=True)
class _Study:
    """The arguments of `contrasts` that are the same for all claims."""

    scores: Scores
    planned: Sequence[CellKey]
    printed: bool
    margin: float

    def rows(self, claim: Claim) -> list[Contrast]:
        """The single comparisons of a claim, and their average, which decides; one by setting if some is enough."""
        averaged, rows, family = defaultdict(list), [], family_of(claim)
        for number in range(1, len(claim.comparisons) + 1):
            for each in self.singles(claim, number):
                numbers = self.numbers([each], capped) if each.weights else {"comparisons": 1}
                place = dict(zip(("setting", "benchmark"), each.scope, strict=True))
                rows.append(Contrast(**{"family": family, "comparison": number, **place, **numbers}))
                if each.weights:
                    averaged[each.scope[0] if claim.quantifier == "some" else None].append(each)
        for setting, own in averaged.items():
            rows.append(Contrast(**{"family": family, "comparison": 0, "setting": setting, **self.numbers(own)}))
        return [replace(row, verdict=word) for row, word in zip(rows, own_verdicts(rows), strict=True)]

    def singles(self, claim: Claim, number: int) -> list[Single]:
        """A comparison in each setting and benchmark that plans any of its terms; one empty row where none does.

        The times of settings that cannot be judged are left out where those of another setting can.
        """
        comparison = claim.comparisons[number - 1]
        cells = [cell for cell in self.planned if not claim.settings or cell.setting in claim.settings]
        columns = [_keys(term, cells) for term in comparison.terms]
        singles = []
        for scope in sorted(set().union(*columns)):
            sums: dict[CellKey | None, float] = Counter()
            for term, column in zip(comparison.terms, columns, strict=True):
                sums.update(_expanded(term, column.get(scope)))
            weights = {key: weight for key, weight in sums.items() if weight}
            if not weights:
                where = f"claim {claim.id}: comparison {number}"
                raise ClaimError(f"{where}: its cells cancel, and nothing is left to compare")
            there = all(key in self.scores for key in weights)
            singles.append(Single(comparison, scope, weights if there else None))
        judged = [each for each in singles if each.weights and not is_unjudged(each.weights, self.scores)]
        if judged:
            singles = [each if each in judged else each._replace(weights=None) for each in singles]
        return singles or [Single(comparison, (None, None), None)]

    def numbers(self, singles: Sequence[Single], tested: Any = lambda result: result) -> dict[str, Any]:
        """The columns of the average of single comparisons; `tested` is what p-values of an estimate are taken of."""
        of, weights = average([single.comparison for single in singles]), Counter()
        for single in singles:
            for key, weight in single.weights.items():
                weights[key] += weight / len(singles)
        weights = {key: weight for key, weight in weights.items() if weight} or weights
        result, over, lone = estimate_sum(weights, self.scores, of.is_ratio)
        value, low, high = (in_unit(of, number) for number in (result.mean, *result.limits()))
        holds, fails = (1.0, 1.0) if lone and not self.printed else p_values(of, tested(result), self.printed)
        seen = None if lone or of.is_ratio else tested(result).detectable
        # The average of k steps of one change is the change over k, and its margin as much smaller: their ends cancel
        lengths = [sum(map(abs, single.weights.values())) for single in singles]
        margin = self.margin * sum(map(abs, weights.values())) / fmean(lengths)
        at_least, at_most = (bound if math.isfinite(bound) else None for bound in (of.low, of.high))
        terms = sorted(weights, key=lambda key: -weights[key])
        is_pair = sorted(weights.values()) == [-1, 1] and len({key.setting for key in terms}) == 1 and not of.is_ratio
        return {
            **(columns_of(*terms) if is_pair else {}),
            "unit": of.unit,
            "value": value,
            "low": low,
            "high": high,
            "p_holds": holds,
            "p_fails": fails,
            "seeds": None if self.printed else result.seeds,
            "over": over,
            "detectable": None if seen is None else round(of.scale * seen, DIGITS),
            "unjudged": ON_CPU if not self.printed and is_unjudged(weights, self.scores) else None,
            "comparisons": len({single.comparison for single in singles}),
            "at_least": at_least,
            "at_most": at_most,
            "p_equivalent": None if lone or self.printed else p_equivalent(of, tested(result), margin),
        }


def family_of(claim: Claim) -> str:
    """The family of a claim's comparisons, or of a question's."""
    return f"{'claim' if claim.where else 'question'} {claim.id}"


def own_verdicts(rows: Sequence[Contrast]) -> list[ClaimVerdict]:
    """Verdicts on the comparisons of one claim, corrected within it: the single ones, then its endpoints."""
    if any(row.unjudged for row in rows if row.comparison):
        return ["not measured" if row.value is None else "not judged" for row in rows]
    singles = [row for row in rows if row.comparison]
    measured = sum(row.value is not None for row in singles)
    return [*verdicts(singles, TAIL if measured == 1 else BESIDE), *verdicts(rows[len(singles) :])]


def columns_of(cell: CellKey, other: CellKey) -> dict[str, Any]:
    """The columns that name two cells of one setting and benchmark."""
    names = ("method", "num_generations", "variant", "measure")
    decodings = {cell.decoding, other.decoding}
    columns = {name: getattr(cell, name) for name in ("setting", "benchmark", "role", *names)}
    columns |= {f"other_{name}": getattr(other, name) for name in names}
    return columns | {"decoding": decodings.pop() if len(decodings) == 1 else None}


def cells_of(row: Contrast) -> tuple[CellKey, CellKey]:
    """The two cells of a row that is of two."""
    place = row.role, row.benchmark
    return (
        CellKey(row.setting, row.variant, *place, row.measure, row.num_generations, row.method),
        CellKey(row.setting, row.other_variant, *place, row.other_measure, row.other_num_generations, row.other_method),
    )


def is_sign(row: Contrast) -> bool:
    """Whether a row is about the sign of the difference of two cells, and so has the verdict of this pair."""
    return row.method is not None and {row.at_least, row.at_most} == {0, None}


def is_unjudged(weights: Weights, scores: Scores) -> bool:
    """Whether any of these cells is a time of trainings that are not known to have had GPUs to themselves."""
    held = [scores.get(key.of_training(GPUS), {}) for key in weights if key.measure.startswith("seconds")]
    return not all(seeds and all(score.value for score in seeds.values()) for seeds in held)


def _keys(term: Term, planned: Sequence[CellKey]) -> dict[Scope, CellKey]:
    """The cell of a term in each scope that plans it."""
    return {
        (cell.setting, cell.benchmark): cell._replace(measure=term.measure)
        for cell in planned
        if (cell.method, cell.num_generations, cell.variant) == (term.method, term.num_generations, term.variant)
        and cell.role == term.role
        and term.benchmark in (None, cell.benchmark)
    }


def _expanded(term: Term, key: CellKey | None) -> dict[CellKey | None, float]:
    """A term as weighted cells; one that is not planned as None, which no score has and nothing cancels."""
    if key is None:
        return {None: 1.0}
    if term.field == "mean":
        return {key: term.weight}
    return {key: term.weight, key.baseline if term.field == "difference" else key.default: -term.weight}


def capped(result: Estimate) -> Estimate:
    """Cap the degrees of freedom at seeds - 1: Satterthwaite's are too many in the tail that Holm's correction looks at
    (`tests/report/test_claim_errors.py`).
    """
    freedom = min(result.degrees_of_freedom, result.seeds - 1)
    return replace(result, degrees_of_freedom=freedom) if result.seeds > 1 else result


def estimate_sum(weights: Weights, scores: Scores, ratio: bool = False) -> tuple[Estimate, str, bool]:
    """The weighted sum of cells (of their logarithms, for a ratio).

    Also what its interval is over, and whether any part of it is of one seed of a training.
    """
    if ratio:
        scores = {key: {seed: _logarithm(key, seed, each) for seed, each in scores[key].items()} for key in weights}
    strata: dict[tuple[str, bool], dict[CellKey, float]] = defaultdict(dict)
    for key, weight in weights.items():  # an untrained model has no noise of seeds, and is not paired by them
        strata[key.setting, key.method != UNTRAINED][key] = weight
    parts, seeds, unpaired, lone = [], [], False, False
    for (_, trained), own in sorted(strata.items()):
        shared, fewest = scored.shared_seeds(own, scores), min(len(scores[key]) for key in own)
        lone |= trained and fewest == 1
        if len(shared) > 1 or (shared and fewest == 1):
            parts.append(scored.weighted_sum(own, scores, shared))
            fewest = len(shared)
        else:
            parts += [scored.weighted_sum({key: weight}, scores, scores[key]) for key, weight in own.items()]
            unpaired = True
        seeds += [fewest] if trained else []
    only = next(iter(weights))
    result = scored.mean(only, scores) if dict(weights) == {only: 1.0} else contrast(parts)
    if seeds:  # the one row of an untrained model is none
        result = replace(result, seeds=min(seeds))
    if result.standard_error is None:
        return result, "", lone
    has_problems = any("" not in part for part in parts)
    over = "problems" if result.seeds == 1 else "seeds and problems" if has_problems else "seeds"
    return result, f"{over}, seeds unpaired" if unpaired else over, lone


def _logarithm(key: CellKey, seed: int, score: Found) -> Found:
    if score.value <= 0:
        raise ValueError(f"{key}: a ratio needs positive numbers, not {score.value:g} of seed {seed}")
    return Found(math.log(score.value), score.n)


def p_values(comparison: Comparison, result: Estimate, certain: bool = False) -> tuple[float, float]:
    """One-sided: of the test that the truth lies between the bounds, and of the test that it lies outside.

    A number that is taken as it stands, or that all seeds agree on, is on one side for certain.
    """
    if certain or result.standard_error == 0:
        inside = comparison.holds_at(in_unit(comparison, result.mean))
        return (0.0, 1.0) if inside else (1.0, 0.0)
    low, high = comparison.low / comparison.scale, comparison.high / comparison.scale
    if comparison.is_ratio:
        low, high = (float(np.log(bound)) if bound > 0 else -math.inf for bound in (low, high))
    holds = max(result.p_value(low, "greater"), result.p_value(high, "less"))
    return holds, min(result.p_value(low, "less"), result.p_value(high, "greater"))


def p_equivalent(comparison: Comparison, result: Estimate, margin: float) -> float | None:
    """Of the two one-sided tests that the truth lies less than `margin` from a bound of 0 (the larger p-value).

    None where the claim is not that a difference (of accuracies, flip rates or rewards) is above or below 0. In
    rewards, the margin is that of the accuracy times the reward of a right answer (of weight 1).
    """
    if comparison.unit not in ALL_RIGHT or {comparison.low, comparison.high} not in ({0, math.inf}, {-math.inf, 0}):
        return None
    return result.p_within(margin * ALL_RIGHT[comparison.unit])


def in_unit(comparison: Comparison, number: float | None) -> float | None:
    """An estimate in the unit of the claim."""
    if number is None:
        return None
    return round(math.exp(number) if comparison.is_ratio else comparison.scale * number, DIGITS)
