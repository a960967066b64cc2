"""Math-verify, as the paper's MATH reward uses it. Imported only in the workers of `mcgrpo.grade.verifier`.

Its own time limits use signals, which fail outside the main thread and do not stop C code. They are off here; the
process is killed from outside instead.
"""

import logging
import re
from itertools import product
from typing import Any

from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify
from sympy import Rational, Symbol

from mcgrpo.grade.exact import differ
from mcgrpo.grade.task import gold_text, presentable
from mcgrpo.records import Verdict

logging.getLogger("math_verify").setLevel(logging.ERROR)

GOLD = [LatexExtractionConfig()]
"""Golds: any LaTeX in the text, operators such as `\\frac43` corrected."""

STRICT = [
    LatexExtractionConfig(
        normalization_config=NormalizationConfig(
            basic_latex=True, units=True, boxed="all", malformed_operators=False, nits=False
        ),
        boxed_match_priority=0,
        try_extract_without_anchor=False,
    )
]
"""Answers: a box first, or LaTeX after an anchor such as "answer is"; malformed operators are refused (appendix)."""


COMMON = r"""
12; -3; 2.5; 1,000; 50\%; 90^\circ; 12\text{ cm}; \text{odd}; \frac{3}{4}; -\frac{1}{2}; 3/4; \frac{x+1}{2x}; 5!; 2^{10}
\sqrt{8}; 2\sqrt{5}; \sqrt[3]{4}; 3+2\sqrt{2}; \frac{1+\sqrt{5}}{2}; \frac{\pi}{6}; 2\pi r^2; x^2-1; 3x^3 - 2x + 7; a_1
(x-1)(x+2)^2; |x-2|; 2+3i; e^{i\pi}; 3 \cdot 4; \binom{5}{2}; 1 \pm \sqrt{2}; (1,2); (3, \frac{\pi}{2}); 1, 2, 3
[0,4); (-\infty,-1)\cup(1,\infty); \left(\frac{1}{2}, 3\right); \{1,2\}; x=5; y = 2x + 3; x = 1, y = 2; x \le -1
1 < x < 2; x \in [1,2]; \cos^2 \theta; \log_2 8; f(x) = x^2; \begin{pmatrix} 1 \\ -2 \end{pmatrix}
"""
"""Common forms of answers, separated by semicolons and lines."""


def warm_up() -> None:
    """Parse and compare common answers: ANTLR builds its tables, and sympy imports its modules, on first use."""
    for latex in re.split(r"[;\n]\s*", COMMON.strip()):
        grader = MathGrader(latex, "")
        for answer in (latex, f"{latex} + 1", f"-{latex}"):
            grader.judge(f"The final answer is: $\\boxed{{{answer}}}$")


class MathGrader:
    """Judge completions against one gold, which is parsed once; equal answers are compared once.

    Args:
        exact: numbers that differ are wrong, though math-verify accepts them (`mcgrpo.grade.exact`).
    """

    def __init__(self, answer: str, solution: str, exact: bool = False):
        self._gold, self._exact = parse_gold(answer, solution, exact), exact
        self._verdicts: dict[Any, Verdict] = {}

    @property
    def gold_parsable(self) -> bool:
        """Whether the gold was parsed."""
        return bool(self._gold)

    def judge(self, completion: str) -> tuple[Verdict, str | None]:
        """The verdict on a completion, and its extracted answer."""
        try:
            parsed = _parse(completion, STRICT)
            verdict = self._verdict(parsed)
        except Exception:
            return "error", None
        return verdict, presentable(str(parsed[-1])) if parsed else None

    def _verdict(self, parsed: list[Any]) -> Verdict:
        try:
            known = self._verdicts.get(tuple(parsed))
        except TypeError:  # a matrix has no hash
            return judge(self._gold, parsed, self._exact)
        if known is None:
            known = self._verdicts[tuple(parsed)] = judge(self._gold, parsed, self._exact)
        return known


def parse_gold(answer: str, solution: str, exact: bool = False) -> list[Any]:
    """The parsed gold of a row: the first match in its solution, as in the paper, or its short answer.

    The short answer is used if there is no solution, if the match in the solution is not a mathematical expression
    (`104.`), or if it contradicts the short answer: the solutions of AIME are free text (`180 + 24 = 204`). Empty if
    neither parses. If `exact`, a symbol in the solution (`\\textbf{(113) }`) is the number of the short answer.
    """
    short = gold_text(answer)
    written = _attempt(solution)
    brief = _attempt(f"${short}$") if short else []
    if exact and written and isinstance(written[0], Symbol) and brief and isinstance(brief[0], Rational):
        return brief
    if written and (not short or str(written[-1]) == short):
        return written
    if _is_expression(written) and (not brief or verify(written, brief, timeout_seconds=None)):
        return written
    return brief or written


def judge(gold: list[Any], parsed: list[Any], exact: bool = False) -> Verdict:
    """The verdict on a parsed answer. `verify` takes the gold first: it is not symmetric.

    An exception, which math-verify turns into False, is an `error` here, unless another parse of the answer is correct.
    An extracted answer that is neither an expression nor equal to the gold's string is `unparseable`.
    """
    failed = False
    # Strings first: they cannot hang. (One string and one expression are never equal to math-verify.)
    pairs = [pair for pair in product(gold, parsed) if isinstance(pair[0], str) == isinstance(pair[1], str)]
    for pair in sorted(pairs, key=lambda pair: not isinstance(pair[0], str)):
        try:
            if verify(*pair, timeout_seconds=None, raise_on_error=True) and not (exact and differ(*pair)):
                return "correct"
        except Exception:
            failed = True
    if failed:
        return "error"
    return "wrong" if _is_expression(parsed) else "unparseable"


def _parse(text: str, config: list[LatexExtractionConfig]) -> list[Any]:
    return parse(text, config, extraction_mode="first_match", parsing_timeout=None, raise_on_error=True)


def _attempt(text: str) -> list[Any]:
    try:
        return _parse(text, GOLD)
    except Exception:
        return []


def _is_expression(parsed: list[Any]) -> bool:
    return bool(parsed) and not isinstance(parsed[0], str)
