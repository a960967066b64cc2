"""The results of judging claims: a row per comparison, and a verdict per claim."""

from dataclasses import dataclass
from typing import Literal

from mcgrpo.analyse.claims import Claim
from mcgrpo.analyse.records import ContrastKind

Source = Literal["published", "ours"]
ClaimVerdict = Literal["holds", "fails", "equivalent", "inconclusive", "not measured", "not judged"]


@dataclass(frozen=True)
class Finding:
    """A row of claims.csv: a `Contrast` by one source, in words, with its verdict and its distance inside its bounds.

    The verdict of `single` rows is corrected for their number.
    """

    claim: str
    source: Source
    kind: ContrastKind
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
    margin: float | None = None


@dataclass(frozen=True)
class Ruling:
    """The verdict on one claim by one source, with its single comparisons and their averages.

    `unjudged` is the reason for having no verdict.
    """

    claim: Claim
    source: Source
    verdict: ClaimVerdict
    findings: tuple[Finding, ...] = ()
    averages: tuple[Finding, ...] = ()
    unjudged: str = ""
