"""The paper's claims with the rulings by its own numbers and by the study's, as rows of a list."""

from dataclasses import dataclass

import pandas as pd

from mcgrpo.analyse.claims import Claim
from mcgrpo.report import wording
from mcgrpo.report.claims.rulings import Finding, Ruling
from mcgrpo.report.claims.tables import evidence, spell


@dataclass(frozen=True)
class Judged:
    """One claim by one source: the verdict, its evidence, and each measured comparison with its verdict."""

    verdict: str
    evidence: str
    findings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClaimRow:
    """One claim with both verdicts; `n` is that of the study's."""

    claim: Claim
    published: Judged
    ours: Judged
    n: str


def claim_rows(published: list[Ruling], ours: list[Ruling], summary: pd.DataFrame) -> list[ClaimRow]:
    """A row for each claim, in the paper's order."""
    tested = summary[summary.n.notna() & (summary.role != "train")]
    sizes = {(row.setting, row.benchmark, row.role == "flips"): int(row.n) for row in tested.itertuples()}
    pairs = zip(published, ours, strict=True)
    return [ClaimRow(paper.claim, _judged(paper), _judged(study), _n(study, sizes)) for paper, study in pairs]


def _judged(ruling: Ruling) -> Judged:
    findings = tuple((row.verdict, spell(row)) for row in _measured(ruling))
    return Judged(ruling.verdict, evidence(ruling), findings)


def _measured(ruling: Ruling) -> list[Finding]:
    return [row for row in ruling.findings if row.verdict != "not measured"]


def _n(ruling: Ruling, sizes: dict[tuple[str, str, bool], int]) -> str:
    """Seeds, problems and comparisons of a verdict; empty if it was not measured."""
    measured = _measured(ruling)
    if not measured:
        return "–"
    of_flips = ruling.claim.comparisons[0].terms[0].role == "flips"
    problems = {sizes[key] for row in measured if (key := (row.setting, row.benchmark, of_flips)) in sizes}
    parts = [wording.counts([row.seeds for row in measured], "seed")]
    parts += [wording.counts(problems, "problem")] if problems else []
    return "; ".join([*parts, wording.count(len(measured), "comparison")])
