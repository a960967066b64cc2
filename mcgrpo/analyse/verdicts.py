"""Verdicts on comparisons that are judged together: tests corrected for their number, in words. Pure functions.

docs/read-the-report.md has the meaning of each word, and the families within which they are corrected. Of equivalence,
two one-sided tests (Schuirmann 1987, J. Pharmacokinetics and Biopharmaceutics 15).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from mcgrpo.analyse.records import Contrast
from mcgrpo.analyse.stats import LEVEL

PairVerdict = Literal["better", "worse", "equivalent", "inconclusive"]
"""On the difference of two cells."""
ClaimVerdict = Literal["holds", "fails", "equivalent", "inconclusive", "not measured", "not judged"]
"""On a claim, with the bounds that it has."""
OF_PAIRS = {"holds": "better", "fails": "worse"}
"""The verdict on the claim that a difference is above 0, as one on the difference."""
MIRRORED = {"better": "worse", "worse": "better"}
"""The verdict on a difference that is taken the other way round."""
TAIL = (1 - LEVEL) / 2
"""Level of each one-sided test."""


def verdicts(rows: Sequence[Contrast], level: float = TAIL) -> list[ClaimVerdict]:
    """Verdicts on comparisons that are judged together, corrected for the number that can be judged."""
    tested = [row for row in rows if row.p_holds is not None and min(row.p_holds, row.p_fails) < 1]
    holds, fails = (holm([getattr(row, name) for row in tested]) for name in ("p_holds", "p_fails"))
    near = holm([1.0 if row.p_equivalent is None else row.p_equivalent for row in tested])
    words = {id(row): _word(*p, level) for row, *p in zip(tested, holds, fails, near, strict=True)}
    return ["not measured" if row.value is None else words.get(id(row), "inconclusive") for row in rows]


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979, Scandinavian Journal of Statistics 6(2))."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.maximum.accumulate(np.sort(p_values) * np.arange(len(p_values), 0, -1))
    return np.minimum(corrected, 1)[np.argsort(order)].tolist()


def _word(p_holds: float, p_fails: float, p_equivalent: float, level: float) -> ClaimVerdict:
    if p_holds <= level or p_fails <= level:
        return "holds" if p_holds <= level else "fails"
    return "equivalent" if p_equivalent <= 2 * level else "inconclusive"
