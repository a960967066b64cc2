"""Rulings on the paper's claims as a list, as Markdown and as LaTeX."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

import pandas as pd
from tabulate import tabulate

from mcgrpo.report import wording
from mcgrpo.report.claims.rulings import ClaimVerdict, Finding, Ruling
from mcgrpo.report.tables.latex import COLOURS

HEADINGS = {"published": "By the paper's own numbers", "ours": "By this study"}
VERBS = {"holds": "hold", "fails": "fail", "equivalent": "equivalent", "inconclusive": "inconclusive"}
TONES = {"holds": "above", "fails": "below"}
UNNAMED = "model not named"
WIDTHS = {1: (0.34, 0.18, 0.42), 2: (0.25, 0.13, 0.265, 0.28)}
"""Column widths of the LaTeX table by the number of sources, as shares of the line."""
LONGTABLE = r"""%% Needs \usepackage{booktabs,longtable} and \usepackage[table]{xcolor}; one column.
\providecommand{\DefineTable}[2]{#2}
\DefineTable{claims}{\begingroup\footnotesize
\setlength{\tabcolsep}{4pt}
\setlength{\LTcapwidth}{\linewidth}
\begin{longtable}{%(columns)s}
\caption{%(caption)s}
\label{tab:claims} \\
\toprule
%(headings)s \\
\midrule
\endfirsthead
\toprule
%(headings)s \\
\midrule
\endhead
\bottomrule
\endfoot
%(body)s
\end{longtable}\endgroup}
"""
CAPTION = (
    "The paper's claims as comparisons (P: a line of its source), each formed per seed and problem. A claim is "
    "decided by one endpoint, named before any result: the average of its comparisons, or of the one that it names, "
    "over all settings measured. It holds where the endpoint's 95% interval lies on the claimed side, and fails where "
    "it lies on the other side or where a single comparison does (after Holm's correction for their number). "
    "Otherwise, a claim of a difference above or below 0 is equivalent where two one-sided tests at 5% show the "
    "endpoint to lie within the study's margin of 0 (in rewards: times the reward of a right answer). All else is "
    "inconclusive. Where some setting is enough, each setting has its endpoint. Intervals in brackets are of one "
    "comparison, uncorrected. Verdicts are corrected within a claim, not for the number of claims. Printed numbers "
    "have no interval and are taken as they stand. Points are percentage points."
)

ERRORS = 0.05
"""The rate at which a claim is decided wrongly, at most; `tests/report/test_claim_errors.py` counts."""
CHANCE = "Each is decided wrongly in at most 5% of studies: of {tested}, up to {wrong} are expected to be, by chance."


def listing(by_source: Sequence[Sequence[Ruling]]) -> str:
    """A line for each claim, with its id and the verdict of each source; below them the count of each verdict."""
    rows = [[rulings[0].claim.id, *(each.verdict for each in rulings)] for rulings in zip(*by_source, strict=True)]
    headings = [HEADINGS[rulings[0].source] for rulings in by_source]
    totals = [f"{heading}: {total(rulings)}" for heading, rulings in zip(headings, by_source, strict=True)]
    return "\n".join([tabulate(rows, ["Claim", *headings], "simple"), "", *totals])


def caption(by_source: Sequence[Sequence[Ruling]], title: str) -> str:
    """The caption, with the count of each verdict."""
    told = [f"{HEADINGS[rulings[0].source]}: {total(rulings)}" for rulings in by_source]
    return " ".join(filter(None, (f"{title}." if title else "", CAPTION, *told)))


def total(rulings: Sequence[Ruling]) -> str:
    """The count of each verdict; of a study, also how many are to be expected to be wrong by chance."""
    counted = counts(rulings)
    text = ", ".join(_counted(n, name) for name, n in counted.items()) + "."
    tested = sum(counted.get(name, 0) for name in VERBS)
    if rulings[0].source == "published" or not tested:
        return text
    return f"{text} {CHANCE.format(tested=wording.count(tested, 'tested claim'), wrong=f'{ERRORS * tested:.2g}')}"


def _counted(n: int, verdict: str) -> str:
    return f"{n} {verdict if n == 1 else VERBS.get(verdict, verdict)}"


def counts(rulings: Sequence[Ruling]) -> dict[str, int]:
    """The count of each verdict that occurs."""
    by_verdict = Counter(ruling.verdict for ruling in rulings)
    return {name: by_verdict[name] for name in get_args(ClaimVerdict) if by_verdict[name]}


def evidence(ruling: Ruling) -> str:
    """The evidence for a verdict: how many comparisons hold, the decisive one, and what is missing."""
    if ruling.verdict == "not judged":
        return f"{ruling.unjudged}."
    measured = [row for row in ruling.findings if row.verdict != "not measured"]
    if not measured:
        nothing = "the paper prints no number for it" if ruling.source == "published" else "no setting has its cells"
        return f"{nothing}."
    parts = [_endpoint(ruling), _tally(measured), _decisive(ruling, measured), _missing(ruling)]
    parts.append(_caveat(measured, ruling.source))
    return "; ".join(filter(None, parts)) + "."


def _endpoint(ruling: Ruling) -> str:
    """The endpoint, if it is not the only comparison."""
    if len(ruling.findings) == 1:
        return ""
    if ruling.claim.quantifier == "some":
        rows = [row for row in ruling.averages if row.kind == "setting"]
        return f"endpoint of the best setting: {spell(max(rows, key=lambda row: row.margin))}" if len(rows) > 1 else ""
    return next((f"endpoint: {spell(row)}" for row in ruling.averages if row.kind == "primary"), "")


def _tally(measured: Sequence[Finding]) -> str:
    if len(measured) == 1:
        return ""
    tally = Counter(row.verdict for row in measured)
    if len(tally) == 1:
        return f"all {len(measured)} {VERBS[measured[0].verdict]}"
    return f"of {len(measured)}, " + ", ".join(f"{tally[name]} {verb}" for name, verb in VERBS.items() if tally[name])


def _decisive(ruling: Ruling, measured: Sequence[Finding]) -> str:
    """The finding furthest outside its bounds (furthest inside, if some setting is enough)."""
    rows = [row for row in measured if row.verdict == ruling.verdict] or measured
    choose = min if ruling.claim.quantifier == "all" else max
    row = choose(rows, key=lambda row: row.margin)
    kind = "best" if choose is max else "closest" if ruling.verdict == "holds" else "worst"
    return (f"{kind}: " if len(measured) > 1 else "") + spell(row)


def _missing(ruling: Ruling) -> str:
    """The settings in which a comparison lacks a cell, and comparisons that lack one in all."""
    rows = [row for row in ruling.findings if row.verdict == "not measured"]
    whole = {row.comparison for row in rows} - {row.comparison for row in ruling.findings if row not in rows}
    names = sorted({place(row) for row in rows if row.comparison not in whole})
    parts = [f"not measured in {', '.join(names)}"] if names else []
    parts += [f"not measured anywhere: {', '.join(sorted(whole))}"] if whole else []
    return "; ".join(parts)


def _caveat(measured: Sequence[Finding], source: str) -> str:
    if source == "published":
        return ""
    parts = ["one seed: interval over problems only"] if any(row.over == "problems" for row in measured) else []
    parts += ["without an interval nothing is claimed"] if any(row.low is None for row in measured) else []
    return "; ".join(parts)


def place(row: Finding) -> str:
    """The setting of a finding, and its benchmark, which a measure of the training itself does not have."""
    if row.kind != "single":
        return row.setting or "all settings"
    setting = row.setting or UNNAMED
    return setting if row.benchmark == "train" else f"{setting}/{row.benchmark}"


def spell(row: Finding) -> str:
    """A finding in words: "qwen3-4b-math/math500: MC-GRPO at G=8 − MC-GRPO at G=2 is +0.91 points (within ±1)"."""
    seeds = "" if row.seeds is None else f", {wording.count(row.seeds, 'seed')}"
    return f"{place(row)}: {row.comparison} is {_number(row)}, claimed {row.threshold}{seeds}{_unseen(row)}"


def _unseen(row: Finding) -> str:
    """For an inconclusive comparison with zero: the smallest detectable value."""
    if row.verdict != "inconclusive" or row.detectable is None or row.threshold not in ("> 0", "< 0", "≥ 0", "≤ 0"):
        return ""
    return f" (could have shown {row.detectable:.2g}{' points' if row.unit == 'points' else ''})"


def _number(row: Finding) -> str:
    numbers = [number for number in (row.value, row.low, row.high) if number is not None]
    if row.unit in ("percent", "points"):
        value, low, high = ([number / 100 for number in numbers] + [None, None])[:3]
        if row.unit == "percent":
            return f"{row.value:.2f}%" if row.seeds is None else f"{wording.accuracy(value, low, high)}%"
        return f"{wording.points(value, 2) if row.seeds is None else wording.signed(value, low, high)} points"
    texts = [f"{number:.3g}".replace("-", "−") for number in numbers]
    text = texts[0] + (f" [{texts[1]}, {texts[2]}]" if len(texts) == 3 else "")
    return f"{text} times" if row.unit == "times" else text


def _said(ruling: Ruling) -> str:
    claim = ruling.claim
    return claim.says + (f" (Read as: {claim.reading})" if claim.reading else "")


def markdown(by_source: Sequence[Sequence[Ruling]], title: str) -> str:
    """The claims as a table with heading and caption."""
    first = by_source[0]
    columns = {
        "Claim": [f"`{ruling.claim.id}`: {_said(ruling)}" for ruling in first],
        "Where": [ruling.claim.where for ruling in first],
    }
    for rulings in by_source:
        texts = [f"**{ruling.verdict}**: {evidence(ruling)}" for ruling in rulings]
        columns[HEADINGS[rulings[0].source]] = texts
    body = pd.DataFrame(columns).to_markdown(index=False, disable_numparse=True)
    return f"## claims\n\n{caption(by_source, title)}\n\n{body}\n"


def latex(by_source: Sequence[Sequence[Ruling]], title: str) -> str:
    r"""The claims as a longtable inside \DefineTable (see `mcgrpo.report.tables.latex`), verdicts in colour."""
    widths = WIDTHS[len(by_source)]
    return LONGTABLE % {
        "columns": "".join(rf">{{\raggedright\arraybackslash}}p{{{width}\linewidth}}" for width in widths),
        "caption": wording.escape_latex(caption(by_source, title)),
        "headings": " & ".join(["Claim", "Where", *(HEADINGS[rulings[0].source] for rulings in by_source)]),
        "body": "\n\\addlinespace\n".join(_latex_row(rulings) for rulings in zip(*by_source, strict=True)),
    }


def _latex_row(rulings: Sequence[Ruling]) -> str:
    cells = [wording.escape_latex(_said(rulings[0])), wording.escape_latex(rulings[0].claim.where)]
    cells += [f"{_coloured(ruling.verdict)}: {wording.escape_latex(evidence(ruling))}" for ruling in rulings]
    return " & ".join(cells) + r" \\"


def _coloured(verdict: str) -> str:
    text = rf"\textbf{{{verdict}}}"
    return rf"\textcolor{{{COLOURS[TONES[verdict]]}}}{{{text}}}" if verdict in TONES else text
