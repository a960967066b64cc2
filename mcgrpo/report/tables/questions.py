"""The questions of a study, each with the comparisons that answer it."""

from collections.abc import Container, Iterator, Sequence

import pandas as pd

from mcgrpo.analyse.claims import Claim, Term, describe, questions
from mcgrpo.analyse.records import Contrast
from mcgrpo.analyse.selections import planned_seeds
from mcgrpo.records import Plan
from mcgrpo.report import wording
from mcgrpo.report.claims.judge import Finding, Ruling, judge
from mcgrpo.report.tables.frame import Table

CAPTION = (
    "What this study asks, written down in its file before it ran. Each comparison is formed per seed and problem; the "
    "average of a question's comparisons is judged first, alone. Holds, fails: the value lies on the side that the "
    "question names, or on the other, by one-sided tests at 2.5%. Equivalent: neither, and it lies within {margin} of "
    "0 by two one-sided tests at 5%. Verdicts are corrected (Holm) within a question, not for the number of questions; "
    "where the tables show the same difference of two cells, it has the verdict that it has there. Intervals are of "
    "one comparison."
)


def table(plan: Plan, contrasts: Sequence[Contrast]) -> Table | None:
    """A block for each question: its average, then its comparisons in each setting that plans their cells.

    None if the study asks none.
    """
    asked = questions(plan.questions)
    if not asked:
        return None
    rulings = judge(asked, contrasts, "ours")
    planned = {(key.setting, key.method, key.num_generations, key.variant) for key in planned_seeds(plan)}
    lines = [line for ruling in rulings for line in _lines(ruling, planned)]
    caption = CAPTION.format(margin=wording.count_points(plan.equivalence_margin))
    return Table("questions", caption, pd.DataFrame(lines), 1)


def _lines(ruling: Ruling, planned: Container[tuple]) -> Iterator[dict[str, object]]:
    claim = ruling.claim
    asked = f"{claim.says} ({claim.reading})" if claim.reading else claim.says
    sizes, terms = _sizes(claim), {describe(each): each.terms for each in claim.comparisons}
    found = [
        each
        for each in ruling.findings
        if all((each.setting, *_cell(term)) in planned for term in terms[each.comparison])
    ] or ruling.findings
    for finding in (*ruling.endpoints, *found) if len(found) > 1 else found:
        yield {
            "Question": asked,
            "Setting": finding.setting or "all settings",
            "Comparison": sizes.get(finding.comparison, finding.comparison),
            "Asked": finding.threshold,
            "Value": value(finding),
            "Seeds": "" if finding.seeds is None else str(finding.seeds),
        }


def _cell(term: Term) -> tuple[str, int, str]:
    return term.method, term.num_generations, term.variant


def _sizes(claim: Claim) -> dict[str, str]:
    """Comparison in words -> its G, where a question is the same at several; else empty."""
    found = {}
    for each in claim.comparisons:
        sizes = {term.num_generations for term in each.terms} - {0}
        if len(sizes) == 1:
            found[describe(each)] = f"G={sizes.pop()}"
    return found if len(set(found.values())) == len(claim.comparisons) else {}


def value(finding: Finding) -> wording.Printed:
    """A value in points or in the unit of the training's measure."""
    unit, factor = ("points", 100) if finding.unit == "points" else ("", 1)
    numbers = [each if each is None else each / factor for each in (finding.value, finding.low, finding.high)]
    return wording.printed(*numbers, unit, verdict=finding.verdict)
