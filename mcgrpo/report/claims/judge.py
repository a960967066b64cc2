"""Judge the paper's claims by the numbers it prints and by those of a study, from comparisons.csv.

The language of claims.yaml is workflow/schemas/claims.schema.yaml; `mcgrpo claims` prints the list of a study.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal

from mcgrpo import shipped
from mcgrpo.analyse.claims import Claim, average, bounds, describe, read_claims
from mcgrpo.analyse.contrasts import family_of, is_sign, of_printed, own_verdicts
from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.measures import decoding_of
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import Contrast
from mcgrpo.analyse.stats import DIGITS
from mcgrpo.analyse.verdicts import TAIL, ClaimVerdict
from mcgrpo.files import RecordError
from mcgrpo.report import wording

Source = Literal["published", "ours"]


@dataclass(frozen=True)
class Finding:
    """A row of claims.csv: a `Contrast` by one source, in words, with its verdict and its distance inside its bounds.

    The verdict of a `single` comparison is corrected for their number, that of an `endpoint` for the number of these;
    that of the sign of a pair of cells, in the family of this pair. `decoding` is that of the accuracies compared.
    """

    claim: str
    source: Source
    kind: Literal["single", "endpoint"]
    decoding: str | None
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
        rows[row.family].append(row)
    for claim in claims:
        wanted = set(range(1, len(claim.comparisons) + 1))
        if (evaluated := {row.comparison for row in rows[family_of(claim)]} - {0}) != wanted:
            raise RecordError(
                f"claim {claim.id}: it has {len(wanted)} comparisons, but {len(evaluated)} have been evaluated; "
                "comparisons.csv is of another claims.yaml"
            )
    return [_rule(claim, rows[family_of(claim)], source) for claim in claims]


def rulings(comparisons: Path | None = None) -> list[list[Ruling]]:
    """The rulings on the paper's claims by the numbers that it prints, and by a study's comparisons.csv if it is given.

    Raises:
        ValueError: as `judge` and `mcgrpo.analyse.frames.read_records`.
    """
    claims = read_claims(shipped.CLAIMS)
    printed = of_printed(claims, as_cells(read_published(shipped.PUBLISHED)))
    found = [judge(claims, printed, "published")]
    return found if comparisons is None else [*found, judge(claims, read_records(comparisons, Contrast), "ours")]


def _rule(claim: Claim, rows: Sequence[Contrast], source: Source) -> Ruling:
    singles = [row for row in rows if row.comparison]
    endpoints = [row for row in rows if not row.comparison]
    measured = [row for row in singles if row.value is not None]
    told = [_finding(claim, row, source, len(measured) == 1) for row in (*singles, *endpoints)]
    found = tuple(told[: len(singles)]), tuple(told[len(singles) :])
    if unjudged := claim.unjudged or next((row.unjudged for row in singles if row.unjudged), ""):
        return Ruling(claim, source, "not judged", *found, unjudged)
    if claim.quantifier == "some":
        return Ruling(claim, source, _in_some(singles, endpoints), *found)
    # The verdict on a pair may be that of another family: it contradicts the claim where the claim's own tests do, too
    beyond = [row for row, word in zip(singles, own_verdicts(rows), strict=False) if row.verdict == word == "fails"]
    missing = {row.comparison for row in singles} - {row.comparison for row in measured}
    return Ruling(claim, source, _in_all(singles, endpoints, bool(beyond), bool(missing), claim.is_two_sided), *found)


def _in_all(
    singles: Sequence[Contrast], endpoints: Sequence[Contrast], beyond: bool, missing: bool, two_sided: bool
) -> ClaimVerdict:
    """The verdict on the endpoint, unless a single comparison lies `beyond` the bounds or none is measured.

    With bounds on both sides it holds only if every single comparison does. Requiring all of several tests to be
    significant needs no correction (an intersection-union test).
    """
    if beyond:
        return "fails"
    if missing:
        return "not measured"
    (endpoint,) = endpoints
    apart = two_sided and any(row.p_holds > TAIL for row in singles if row.value is not None)
    return "inconclusive" if apart and endpoint.verdict == "holds" else endpoint.verdict


def _in_some(singles: Sequence[Contrast], endpoints: Sequence[Contrast]) -> ClaimVerdict:
    """The verdict on the best endpoint.

    The claim fails only once every setting is measured, as a missing one may be sufficient; and only if each of them
    does, so that this is not corrected for their number, but for an endpoint that has the verdict of a pair.
    """
    words = {"fails" if row.p_fails <= TAIL and not is_sign(row) else row.verdict for row in endpoints}
    words.add("not measured" if any(row.value is None for row in singles) else "fails")
    return next(word for word in ("holds", "inconclusive", "not measured", "equivalent", "fails") if word in words)


def _finding(claim: Claim, row: Contrast, source: Source, alone: bool) -> Finding:
    """A row in words; what it could have shown is known of a claim's only comparison."""
    chosen = [claim.comparisons[row.comparison - 1]] if row.comparison else claim.comparisons
    tested, margin = average(chosen), None
    if row.value is not None:
        low = -math.inf if row.at_least is None else row.at_least
        high = math.inf if row.at_most is None else row.at_most
        tested, margin = replace(tested, low=low, high=high), round(min(row.value - low, high - row.value), DIGITS)
    same = {field.name: getattr(row, field.name) for field in fields(Finding) if hasattr(row, field.name)}
    average_of = f"average of {wording.count(row.comparisons, 'comparison')}"
    decodings = {decoding_of(term.measure) for each in chosen for term in each.terms}
    if not row.comparison:  # an endpoint is of all settings, or of all benchmarks of one
        same |= {"setting": row.setting if claim.quantifier == "some" else None, "benchmark": None}
    in_words = {
        "claim": claim.id,
        "source": source,
        "decoding": decodings.pop() if len(decodings) == 1 else None,
        "detectable": row.detectable if alone or not row.comparison else None,
        "kind": "single" if row.comparison else "endpoint",
        "comparison": describe(tested) if len(chosen) == 1 else average_of,
        "unit": tested.unit,
        "threshold": bounds(tested),
        "over": row.over or "",
        "margin": margin,
    }
    return Finding(**same | in_words)
