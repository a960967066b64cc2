"""Judge the paper's claims by the numbers it prints and by those of a study, from contrasts.csv.

The language of claims.yaml is workflow/schemas/claims.schema.yaml; `mcgrpo claims` prints the list of a study.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

import numpy as np

from mcgrpo import shipped
from mcgrpo.analyse.claims import Claim, average, bounds, describe, read_claims
from mcgrpo.analyse.contrasts import of_printed
from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import Contrast
from mcgrpo.analyse.stats import DIGITS, LEVEL
from mcgrpo.files import RecordError
from mcgrpo.report import wording

Source = Literal["published", "ours"]
ClaimVerdict = Literal["holds", "fails", "equivalent", "inconclusive", "not measured", "not judged"]
TAIL = (1 - LEVEL) / 2
"""Level of each one-sided test."""
BESIDE = TAIL / 2
"""Level of all single comparisons together, which are tested in addition to their average, the endpoint."""


@dataclass(frozen=True)
class Finding:
    """A row of claims.csv: a `Contrast` by one source, in words, with its verdict and its distance inside its bounds.

    The verdict of a `single` comparison is corrected for their number, that of an `endpoint` for the number of these.
    """

    claim: str
    source: Source
    kind: Literal["single", "endpoint"]
    setting: str | None
    benchmark: str | None
    comparison: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    threshold: str
    seeds: int | None
    over: str
    p_holds: float | None
    p_fails: float | None
    detectable: float | None
    verdict: ClaimVerdict
    margin: float | None


@dataclass(frozen=True)
class Ruling:
    """The verdict on one claim by one source, with its single comparisons and its endpoints.

    `unjudged` is the reason for having no verdict.
    """

    claim: Claim
    source: Source
    verdict: ClaimVerdict
    findings: tuple[Finding, ...]
    endpoints: tuple[Finding, ...]
    unjudged: str = ""


def judge(claims: Sequence[Claim], contrasts: Iterable[Contrast], source: Source) -> list[Ruling]:
    """A ruling on each claim.

    `mcgrpo.report.claims.tables.CAPTION` says how. An endpoint holds (fails) if the one-sided test that it lies within
    (outside) its bounds is significant at 2.5%, each of several single comparisons at 1.25% after Holm's correction: a
    claim that is true everywhere fails in less than 5% of studies. If some setting is enough, the claim holds if the
    endpoint of one does (after Holm's correction for settings), and fails if every setting does, once all are measured.
    Printed numbers are compared without a test.

    Raises:
        RecordError: if the contrasts are of other claims.
    """
    rows: dict[str, list[Contrast]] = defaultdict(list)
    for row in contrasts:
        rows[row.claim].append(row)
    for claim in claims:
        wanted = set(range(1, len(claim.comparisons) + 1))
        if (evaluated := {row.comparison for row in rows[claim.id]} - {0}) != wanted:
            raise RecordError(
                f"claim {claim.id}: it has {len(wanted)} comparisons, but {len(evaluated)} have been evaluated; "
                "contrasts.csv is of another claims.yaml"
            )
    return [_rule(claim, rows[claim.id], source) for claim in claims]


def rulings(contrasts: Path | None = None) -> list[list[Ruling]]:
    """The rulings on the paper's claims by the numbers that it prints, and by a study's contrasts.csv if it is given.

    Raises:
        ValueError: as `judge` and `mcgrpo.analyse.frames.read_records`.
    """
    claims = read_claims(shipped.CLAIMS)
    printed = of_printed(claims, as_cells(read_published(shipped.PUBLISHED)))
    found = [judge(claims, printed, "published")]
    return found if contrasts is None else [*found, judge(claims, read_records(contrasts, Contrast), "ours")]


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979, Scandinavian Journal of Statistics 6(2))."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.maximum.accumulate(np.sort(p_values) * np.arange(len(p_values), 0, -1))
    return np.minimum(corrected, 1)[np.argsort(order)].tolist()


def _rule(claim: Claim, rows: Sequence[Contrast], source: Source) -> Ruling:
    singles = [row for row in rows if row.comparison]
    endpoints = [row for row in rows if not row.comparison]
    measured = [row for row in singles if row.value is not None]
    unjudged = claim.unjudged or next((row.unjudged for row in singles if row.unjudged), "")
    if unjudged:
        words = ["not measured" if row.value is None else "not judged" for row in (*singles, *endpoints)]
    else:
        words = [*verdicts(singles, TAIL if len(measured) == 1 else BESIDE), *verdicts(endpoints)]
    if len(measured) != 1:
        singles = [replace(row, detectable=None) for row in singles]
    told = [_finding(claim, row, word, source) for row, word in zip((*singles, *endpoints), words, strict=True)]
    found = tuple(told[: len(singles)]), tuple(told[len(singles) :])
    if unjudged:
        return Ruling(claim, source, "not judged", *found, unjudged)
    missing = {row.comparison for row in singles} - {row.comparison for row in measured}
    verdict = _in_some(*found) if claim.quantifier == "some" else _in_all(*found, bool(missing), claim.is_two_sided)
    return Ruling(claim, source, verdict, *found)


def verdicts(rows: Sequence[Contrast], level: float = TAIL) -> list[ClaimVerdict]:
    """Verdicts on comparisons that are judged together, corrected for the number that can be judged."""
    tested = [row for row in rows if row.p_holds is not None and min(row.p_holds, row.p_fails) < 1]
    holds, fails = (holm([getattr(row, name) for row in tested]) for name in ("p_holds", "p_fails"))
    near = holm([1.0 if row.p_equivalent is None else row.p_equivalent for row in tested])
    words = {id(row): _word(*p, level) for row, *p in zip(tested, holds, fails, near, strict=True)}
    return ["not measured" if row.value is None else words.get(id(row), "inconclusive") for row in rows]


def _word(p_holds: float, p_fails: float, p_equivalent: float, level: float) -> ClaimVerdict:
    if p_holds <= level or p_fails <= level:
        return "holds" if p_holds <= level else "fails"
    return "equivalent" if p_equivalent <= 2 * level else "inconclusive"


def _in_all(singles: Sequence[Finding], endpoints: Sequence[Finding], missing: bool, two_sided: bool) -> ClaimVerdict:
    """The verdict on the endpoint, unless a single comparison fails or none is measured.

    With bounds on both sides it holds only if every single comparison does. Requiring all of several tests to be
    significant needs no correction (an intersection-union test).
    """
    if any(row.verdict == "fails" for row in singles):
        return "fails"
    if missing:
        return "not measured"
    (endpoint,) = endpoints
    apart = two_sided and any(row.p_holds > TAIL for row in singles if row.value is not None)
    return "inconclusive" if apart and endpoint.verdict == "holds" else endpoint.verdict


def _in_some(singles: Sequence[Finding], endpoints: Sequence[Finding]) -> ClaimVerdict:
    """The verdict on the best endpoint.

    The claim fails only once every setting is measured, as a missing one may be sufficient; and only if each of them
    does, so that this is not corrected for their number.
    """
    words = {"fails" if row.p_fails <= TAIL else row.verdict for row in endpoints}
    words.add("not measured" if any(row.value is None for row in singles) else "fails")
    return next(word for word in ("holds", "inconclusive", "not measured", "equivalent", "fails") if word in words)


def _finding(claim: Claim, row: Contrast, word: ClaimVerdict, source: Source) -> Finding:
    chosen = [claim.comparisons[row.comparison - 1]] if row.comparison else claim.comparisons
    tested, margin = average(chosen), None
    if row.value is not None:
        low = -math.inf if row.at_least is None else row.at_least
        high = math.inf if row.at_most is None else row.at_most
        tested, margin = replace(tested, low=low, high=high), round(min(row.value - low, high - row.value), DIGITS)
    same = {field.name: getattr(row, field.name) for field in fields(Finding) if hasattr(row, field.name)}
    average_of = f"average of {wording.count(row.comparisons, 'comparison')}"
    in_words = {
        "source": source,
        "kind": "single" if row.comparison else "endpoint",
        "comparison": describe(tested) if len(chosen) == 1 else average_of,
        "unit": tested.unit,
        "threshold": bounds(tested),
        "over": row.over or "",
        "verdict": word,
        "margin": margin,
    }
    return Finding(**same | in_words)
