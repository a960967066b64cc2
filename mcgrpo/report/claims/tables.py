"""Rulings on the paper's claims as a list, and as a table in Markdown and LaTeX."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pandas as pd
from tabulate import tabulate

from mcgrpo.analyse.verdicts import ClaimVerdict
from mcgrpo.files import write_csv, write_text
from mcgrpo.report import wording
from mcgrpo.report.claims.judge import Finding, Ruling
from mcgrpo.report.tables.frame import PREAMBLE, Table, latex, markdown
from mcgrpo.report.wording import Printed

HEADINGS = {"published": "By the paper's own numbers", "ours": "By this study"}
VERBS = {"holds": "hold", "fails": "fail", "equivalent": "equivalent", "inconclusive": "inconclusive"}
WIDTHS = (0.55, 0.1, 0.1, 0.19)
"""Column widths of the LaTeX table, as shares of the line."""
CAPTION = (
    "The paper's claims as comparisons, each formed per seed and problem. A claim is decided by one endpoint, named "
    "before any result: the average of its comparisons over all settings measured. It holds where the endpoint's 95% "
    "interval lies on the claimed side, and fails where it lies on the other side or where a single comparison does "
    "(after Holm's correction for their number). Otherwise, a claim of a difference above or below 0 is equivalent "
    "where two one-sided tests at 5% show the endpoint to lie within the study's margin of 0 (in rewards: times the "
    "reward of a right answer; for the average of k steps of one change: over k). All else is inconclusive. Where "
    "some setting is enough, each setting has its "
    "endpoint. Intervals in brackets are of one comparison, uncorrected. Verdicts are corrected within a claim, not "
    "for the number of claims. A number that is the difference of two cells, against 0, has the verdict that it has in "
    "the tables; a single one contradicts a claim where both say so. After a number stands how the models decoded. "
    "Printed numbers have no interval and are taken as they stand. Points are percentage points."
)
ERRORS = 0.05
"""The rate at which a claim is decided wrongly, at most; `tests/report/test_claim_errors.py` counts."""
CHANCE = "Each is decided wrongly in at most 5% of studies: of {tested}, up to {wrong} are expected to be, by chance."
Rulings = Sequence[Sequence[Ruling]]
"""By source: the paper's own numbers, then those of the study if there is one."""


def listing(by_source: Rulings) -> str:
    """A line for each claim, with its id and the verdict of each source; below them the count of each verdict."""
    rows = [[rulings[0].claim.id, *(each.verdict for each in rulings)] for rulings in zip(*by_source, strict=True)]
    headings = [HEADINGS[rulings[0].source] for rulings in by_source]
    return "\n".join([tabulate(rows, ["Claim", *headings], "simple"), "", *map(total, by_source)])


def total(rulings: Sequence[Ruling]) -> str:
    """The count of each verdict by one source; of a study, also how many are to be expected to be wrong by chance."""
    counted = counts(rulings)
    text = ", ".join(_counted(n, name) for name, n in counted.items())
    tested = sum(counted.get(name, 0) for name in VERBS)
    text = f"{HEADINGS[rulings[0].source]}: {text}."
    if rulings[0].source == "published" or not tested:
        return text
    return f"{text} {CHANCE.format(tested=wording.count(tested, 'tested claim'), wrong=f'{ERRORS * tested:.2g}')}"


def _counted(n: int, verdict: str) -> str:
    return f"{n} {verdict if n == 1 else VERBS.get(verdict, verdict)}"


def counts(rulings: Sequence[Ruling]) -> dict[str, int]:
    """The count of each verdict that occurs."""
    by_verdict = Counter(ruling.verdict for ruling in rulings)
    return {name: by_verdict[name] for name in get_args(ClaimVerdict) if by_verdict[name]}


def table(by_source: Rulings, title: str = "", ids: bool = False) -> Table:
    """A line for each claim: what it says, its verdicts, and by the last source the number that decides, and others."""
    lines = [
        {
            "Claim": f"`{rulings[0].claim.id}`: {said(rulings[0])}" if ids else said(rulings[0]),
            **{HEADINGS[each.source]: Printed("", verdict=each.verdict) for each in rulings},
            "Number": decisive(rulings[-1]),
            "Comparisons": comparisons(rulings[-1]),
        }
        for rulings in zip(*by_source, strict=True)
    ]
    return Table("claims", " ".join([CAPTION, *map(total, by_source)]), pd.DataFrame(lines), 0).titled(title)


def said(ruling: Ruling) -> str:
    """The claim, how it is read, and where in its source the paper says so."""
    claim = ruling.claim
    return f"{claim.says} {f'(Read as: {claim.reading}) ' if claim.reading else ''}[{claim.where}]"


def decisive(ruling: Ruling) -> str:
    """The number that decides, what was claimed of it, and if that is inconclusive, what could have been seen."""
    row = None if ruling.verdict in ("not measured", "not judged") else endpoint(ruling)
    if row and ruling.verdict == "fails" != row.verdict:  # a single comparison contradicts the endpoint
        failing = [each for each in ruling.findings if each.verdict == "fails"]
        row = min(failing, key=lambda each: each.margin, default=row)
    return f"{number_with_unit(row)}, claimed {row.threshold}{_unseen(row)}" if row else ""


def endpoint(ruling: Ruling) -> Finding | None:
    """The only comparison, or the endpoint: that of the best setting if one is enough."""
    rows = ruling.findings if len(ruling.findings) == 1 else ruling.endpoints
    return max(rows, key=lambda row: row.margin, default=None)


def comparisons(ruling: Ruling) -> str:
    """How many comparisons hold, the worst of those that fail, which are missing, and why any is not judged."""
    if ruling.verdict == "not judged":
        return f"{ruling.unjudged}."
    tally = Counter(row.verdict for row in ruling.findings)
    if set(tally) <= {"not measured"}:
        nothing = "the paper prints no number for it" if ruling.source == "published" else "no setting has its cells"
        return f"{nothing}."
    failing = [row for row in ruling.findings if row.verdict == "fails"]
    measured = [row for row in ruling.findings if row.value is not None] if ruling.source == "ours" else []
    parts = [", ".join(_counted(tally[name], name) for name in VERBS if tally[name])]
    parts += [f"worst: {spell(min(failing, key=lambda row: row.margin))}"] if failing else []
    parts += [f"not measured in {names}"] if (names := _missing(ruling)) else []
    parts += ["one seed: interval over problems only"] if any(row.over == "problems" for row in measured) else []
    parts += ["without an interval nothing is claimed"] if any(row.low is None for row in measured) else []
    return "; ".join(parts) + "."


def _missing(ruling: Ruling) -> str:
    """The settings in which a comparison lacks a cell; a comparison that lacks one in all is named instead."""
    rows = [row for row in ruling.findings if row.verdict == "not measured"]
    whole = {row.comparison for row in rows} - {row.comparison for row in ruling.findings if row not in rows}
    names = {place(row) for row in rows if row.comparison not in whole}
    return ", ".join([*sorted(names), *(f"any setting: {name}" for name in sorted(whole))])


def place(row: Finding) -> str:
    """The setting of a finding, and its benchmark, which a measure of the training itself does not have."""
    if row.kind != "single":
        return row.setting or "all settings"
    setting = row.setting or "model not named"
    return setting if row.benchmark == "train" else f"{setting}/{row.benchmark}"


def spell(row: Finding) -> str:
    """A finding in words: "qwen3-4b-math/math500: MC-GRPO at G=8 − MC-GRPO at G=2 is +0.91 points, claimed ≥ 1"."""
    if row.value is None:
        return f"{place(row)}: {row.comparison}"
    seeds = "" if row.seeds is None else f", {wording.count(row.seeds, 'seed')}"
    return f"{place(row)}: {row.comparison} is {number_with_unit(row)}, claimed {row.threshold}{seeds}{_unseen(row)}"


def _unseen(row: Finding) -> str:
    """For an inconclusive comparison with zero: the smallest detectable value."""
    if row.verdict != "inconclusive" or row.detectable is None or row.threshold not in ("> 0", "< 0", "≥ 0", "≤ 0"):
        return ""
    return f" (could have shown {row.detectable:.2g}{' points' if row.unit == 'points' else ''})"


def number_with_unit(row: Finding) -> str:
    """The number of a finding with its interval and unit; printed ones have two decimals and no interval."""
    unit = row.unit if row.unit in ("percent", "points") else ""
    numbers = [each and each / wording.UNITS[unit][0] for each in (row.value, row.low, row.high)]
    text = str(wording.printed(*numbers, unit))
    if unit and row.seeds is None:
        text = wording.number(numbers[0], unit, 2)
    text += {"percent": "%", "points": " points", "times": " times"}.get(row.unit, "")
    return f"{text} ({row.decoding})" if row.decoding else text


def write_rulings(by_source: Rulings, output: Path, title: str) -> None:
    """Write claims.csv, claims.md and claims.tex."""
    findings = [each for rulings in by_source for ruling in rulings for each in (*ruling.findings, *ruling.endpoints)]
    widths, found = [*WIDTHS[: 1 + len(by_source)], WIDTHS[-1]], table(by_source, title)
    short = replace(found, frame=found.frame.drop(columns="Comparisons"))
    columns = "".join(rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}" for width in widths)
    write_csv(output / "claims.csv", Finding, findings)
    write_text(output / "claims.md", f"{markdown(table(by_source, title, ids=True))}\n")
    write_text(output / "claims.tex", f"{PREAMBLE}\n{latex(short, columns)}\n")
