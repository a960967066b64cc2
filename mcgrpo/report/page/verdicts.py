"""The paper's claims with the rulings by its own numbers and by the study's, as rows of a list."""

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from mcgrpo.report import wording
from mcgrpo.report.claims.rulings import Finding, Ruling
from mcgrpo.report.claims.tables import HEADINGS, evidence, spell

ORDER = ("holds", "fails", "inconclusive", "not measured", "not judged")


@dataclass(frozen=True)
class Judged:
    """One claim by one source: the verdict, its evidence, and each measured comparison with its verdict."""

    verdict: str
    evidence: str
    findings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClaimRow:
    """One claim with both verdicts; `n` is that of the study's."""

    id: str
    says: str
    reading: str
    where: str
    published: Judged
    ours: Judged
    n: str


def claim_rows(published: list[Ruling], ours: list[Ruling], summary: pd.DataFrame) -> list[ClaimRow]:
    """A row for each claim, in the paper's order."""
    sizes = {
        (row.setting, row.benchmark): int(row.n) for row in summary[summary.n.notna() & (summary.role != "train")]
        .drop_duplicates(["setting", "benchmark"]).itertuples()
    }  # fmt: skip
    return [
        ClaimRow(
            id=paper.claim.id,
            says=paper.claim.says,
            reading=paper.claim.reading,
            where=paper.claim.where,
            published=_judged(paper),
            ours=_judged(study),
            n=_n(study, sizes),
        )
        for paper, study in zip(published, ours, strict=True)
    ]


def counts(rulings: list[Ruling]) -> dict[str, int]:
    """The count of each verdict that occurs."""
    found = Counter(ruling.verdict for ruling in rulings)
    return {name: found[name] for name in ORDER if found[name]}


def heading(rulings: list[Ruling]) -> str:
    """The source of the rulings."""
    return HEADINGS[rulings[0].source]


def _judged(ruling: Ruling) -> Judged:
    findings = tuple((row.verdict, spell(row)) for row in _measured(ruling))
    return Judged(ruling.verdict, evidence(ruling), findings)


def _measured(ruling: Ruling) -> list[Finding]:
    return [row for row in ruling.findings if row.verdict != "not measured"]


def _n(ruling: Ruling, sizes: dict[tuple[str, str], int]) -> str:
    """Seeds, problems and comparisons of a verdict; empty if it was not measured."""
    measured = _measured(ruling)
    if not measured:
        return "–"
    seeds = wording.span([row.seeds for row in measured])
    found = {sizes[key] for row in measured if (key := (row.setting, row.benchmark)) in sizes}
    parts = [f"{seeds} {'seed' if seeds == '1' else 'seeds'}"]
    parts += [f"{wording.span(found)} problems"] if found else []
    return "; ".join([*parts, wording.count(len(measured), "comparison")])
