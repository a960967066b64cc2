"""Claims as data: those of claims.yaml, the questions of a study file, and how comparisons are spelt."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from mcgrpo import shipped
from mcgrpo.analyse import curves, measures, sign_flips
from mcgrpo.records import Role
from mcgrpo.study import strict_yaml
from mcgrpo.study.methods import METHODS, UNTRAINED, label
from mcgrpo.study.settings import Config, StudyError
from mcgrpo.study.variants import DEFAULT, flips_of

_NAMES = dict.fromkeys(("in", "out"), measures.MEASURE_NAMES) | {
    "train": "|".join(curves.CURVE_NAMES),
    "flips": sign_flips.FLIP_NAMES,
}
"""What may be asked of a benchmark of each role: a pattern."""

RATIO = ("train", "seconds", "mean")
"""Role, measure (or its first word) and field of what may stand in a ratio: numbers above 0."""


class ClaimError(ValueError):
    """A file of claims that cannot be judged; the message names the claim and the culprit."""


@dataclass(frozen=True)
class Term:
    """A number of one cell in each setting, times its weight."""

    method: str
    num_generations: int
    weight: float = 1
    variant: str = DEFAULT
    field: Literal["mean", "difference", "change"] = "mean"
    role: Role = "in"
    benchmark: str | None = None
    measure: str = "greedy"


@dataclass(frozen=True)
class Comparison:
    """A weighted sum of terms from `low` to `high`; where `is_ratio`, the first over the second.

    A ratio is the sum of logarithms, the second with a weight of -1. A bound that is `open` is not itself allowed.
    """

    terms: tuple[Term, ...]
    is_ratio: bool = False
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def holds_at(self, value: float) -> bool:
        """Whether a value lies between the bounds."""
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    @property
    def scale(self) -> float:
        """Fractions are judged in percentage points; ratios and measures of the training itself as they are."""
        return 1 if self.is_ratio or self.terms[0].role == "train" else 100

    @property
    def unit(self) -> str:
        """What the value is counted in."""
        if self.is_ratio:
            return "times"
        if self.scale == 100 and len(self.terms) == 1 and self.terms[0].field == "mean":
            return "percent"
        return "points" if self.scale == 100 else self.terms[0].measure


@dataclass(frozen=True)
class Claim:
    """One claim: `says` it, `where` the paper does, and what must hold in `all` (or `some`) settings.

    A question of a study file is one that the paper does not make: its `where` is empty.
    """

    id: str
    says: str
    where: str
    comparisons: tuple[Comparison, ...] = ()
    reading: str = ""
    settings: tuple[str, ...] = ()
    quantifier: Literal["all", "some"] = "all"
    unjudged: str = ""

    @property
    def is_two_sided(self) -> bool:
        """Whether its comparisons are bounded on both sides."""
        return any(math.isfinite(each.low) and math.isfinite(each.high) for each in self.comparisons)


def read_claims(path: str | Path) -> list[Claim]:
    """The claims of a YAML file.

    Raises:
        ClaimError: for a file that breaks the schema, a name given twice, or a method, measure or field that does not
            exist, naming claim and culprit.
    """
    try:
        content = strict_yaml.load(path)
    except StudyError as error:
        raise ClaimError(str(error)) from None
    return _claims(content, str(path))


def questions(rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The `questions` of a study, in the language of claims.

    Raises:
        ClaimError: as `read_claims`.
    """
    content = {"claims": [{"where": "the study", **row} for row in rows]}
    return [replace(claim, where="") for claim in _claims(content, "questions")] if rows else []


def check_questions(config: Config) -> None:
    """Refuse a study whose questions are not in the language of claims, or name what the study does not have.

    Raises:
        ClaimError: naming the question and the culprit.
    """
    variants = {DEFAULT, *config.get("variants", {}), *config.get("selections", {})}
    for claim in questions(config.get("questions", [])):
        terms = [term for each in claim.comparisons for term in each.terms]
        benchmarks = {term.benchmark for term in terms} - {None, "train"}
        named = {name for name in {term.variant for term in terms} - variants if not flips_of(name)}
        unknown = [f"{name!r} under settings" for name in sorted({*claim.settings} - {*config["settings"]})]
        unknown += [f"{name!r} under datasets" for name in sorted(benchmarks - {*config["datasets"]})]
        unknown += [f"{name!r} under variants or selections" for name in sorted(named)]
        if unknown:
            raise ClaimError(f"questions: claim {claim.id}: no {unknown[0]}")


def _claims(content: Any, path: str) -> list[Claim]:
    schema = strict_yaml.load(shipped.CLAIMS_SCHEMA)
    if error := best_match(Draft202012Validator(schema).iter_errors(content)):
        raise ClaimError(f"{path}: {_place(content, list(error.absolute_path))}: {error.message}")
    claims = [_claim(row) for row in content["claims"]]
    names = [claim.id for claim in claims]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ClaimError(f"{path}: claim {twice[0]}: this id is given twice")
    return claims


def _place(content: Any, path: list[str | int]) -> str:
    """Where in the file a mistake is, by the claim's id."""
    if len(path) < 2:
        return ".".join(map(str, path)) or "the file"
    claim = content["claims"][path[1]]
    name = claim.get("id", f"number {path[1]}") if isinstance(claim, dict) else f"number {path[1]}"
    return ": ".join([f"claim {name}", *([".".join(map(str, path[2:]))] if path[2:] else [])])


def _claim(row: dict[str, Any]) -> Claim:
    where = f"claim {row['id']}"
    comparisons = tuple(_comparison(spec, where) for spec in row.get("comparisons", []))
    if len(units := sorted({comparison.unit for comparison in comparisons})) > 1:
        raise ClaimError(f"{where}: comparisons of one claim must share a unit, not {', '.join(units)}")
    if len({(math.isfinite(c.low), math.isfinite(c.high), c.low_open, c.high_open) for c in comparisons}) > 1:
        raise ClaimError(f"{where}: comparisons that are averaged must be bounded on the same sides")
    claim = Claim(**row | {"comparisons": comparisons, "settings": tuple(row.get("settings", ()))})
    if claim.quantifier == "some" and (len(comparisons) > 1 or claim.is_two_sided):
        raise ClaimError(f"{where}: 'quantifier: some' is of one comparison with one bound")
    return claim


def _comparison(spec: dict[str, Any], where: str) -> Comparison:
    ratio = "ratio" in spec
    terms = tuple(Term(**row) for row in spec["ratio" if ratio else "terms"])
    if ratio:
        terms = terms[0], replace(terms[1], weight=-terms[1].weight)
    for term in terms:
        _check(term, where)
    if ratio and {(term.role, term.measure.split("_")[0], term.field) for term in terms} != {RATIO}:
        raise ClaimError(f"{where}: a ratio is of two training times, not {', '.join(map(_name, terms))}")
    if len(places := sorted({term.benchmark or term.role for term in terms})) > 1:
        raise ClaimError(f"{where}: terms of one comparison must share a role or benchmark, not {', '.join(places)}")
    within = spec.get("within", math.inf)
    return Comparison(
        terms,
        is_ratio=ratio,
        low=spec.get("at_least", spec.get("above", -within)),
        high=spec.get("at_most", spec.get("below", within)),
        low_open="above" in spec,
        high_open="below" in spec,
    )


def _check(term: Term, where: str) -> None:
    if term.method not in (known := (UNTRAINED, *METHODS)):
        raise ClaimError(f"{where}: unknown method {term.method!r} (known: {', '.join(known)})")
    if not re.fullmatch(_NAMES[term.role], term.measure):
        raise ClaimError(f"{where}: unknown measure {term.measure!r} of {term.role}")
    if term.field == "difference" and (term.method == UNTRAINED or not METHODS[term.method].baseline):
        raise ClaimError(f"{where}: field 'difference' of {term.method}, which has no baseline")
    if term.field == "change" and term.variant == DEFAULT:
        raise ClaimError(f"{where}: field 'change' of the variant {DEFAULT}, which changes from itself")


def average(comparisons: Sequence[Comparison]) -> Comparison:
    """What the average of comparisons is judged by: the averages of their bounds."""
    first = comparisons[0]
    lows, highs = ([getattr(each, name) for each in comparisons] for name in ("low", "high"))
    if first.is_ratio:
        low, high = (math.prod(bounds) ** (1 / len(bounds)) if bounds[0] > 0 else bounds[0] for bounds in (lows, highs))
    else:
        low, high = (round(sum(bounds) / len(bounds), 9) for bounds in (lows, highs))
    return replace(first, low=low, high=high)


def describe(comparison: Comparison) -> str:
    """The left-hand side of a comparison in words: "MC-GRPO at G=8 − MC-GRPO at G=2"."""
    if comparison.is_ratio:
        return " / ".join(map(_name, comparison.terms))
    text = ""
    for term in comparison.terms:
        sign = "−" if term.weight < 0 else "+" if text else ""
        times = "" if abs(term.weight) == 1 else f"{abs(term.weight):g} × "
        text += f" {sign} {times}{_name(term)}" if text else f"{sign}{times}{_name(term)}"
    return text


def _name(term: Term) -> str:
    if term.role == "flips":
        measure = sign_flips.parse_measure(term.measure)
        oracle = measure.oracle.removeprefix("oracle-")
        return f"flip rate of the {measure.baseline} at k={measure.k} (oracle {oracle}, {measure.convention})"
    kind = {"mean": "", "difference": "gain of ", "change": "change of "}[term.field]
    variant = "" if term.variant == DEFAULT else f" ({term.variant})"
    measure = "" if term.measure == "greedy" else f"{term.measure}, "
    benchmark = f" on {term.benchmark}" if term.benchmark else ""
    return f"{measure}{kind}{label(term.method)} at G={term.num_generations}{variant}{benchmark}"


def bounds(comparison: Comparison) -> str:
    """The right-hand side: "≥ 2.35 and ≤ 2.67", "within ±1"."""
    if comparison.low == -comparison.high:
        return f"within ±{comparison.high:g}"
    low = f"{'>' if comparison.low_open else '≥'} {comparison.low:g}" if math.isfinite(comparison.low) else ""
    high = f"{'<' if comparison.high_open else '≤'} {comparison.high:g}" if math.isfinite(comparison.high) else ""
    return " and ".join(filter(None, (low, high))).replace("-", "−")
