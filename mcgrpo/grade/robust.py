r"""The protocol `robust` (ours): rewrite answers in forms that the paper's grading misreads.

`paper` is math-verify as the paper configures it. It takes `2010_4` for `2010_3`, and refuses `10\,000`, `90°`, `5.`,
`0.\overline{3}`, `\sqrt2`, `\frac12`, `½` and `e^{i\pi}` although they are correct. Here completions and golds are
rewritten before the same grader reads them. Of several boxes the last one counts, or as many as the gold has values
(`mcgrpo.grade.boxes`); plain text in a box is read too (`mcgrpo.grade.plain`). Numbers are compared exactly:
math-verify takes `1/2^{77}` for `1/2^{76}` (`mcgrpo.grade.exact`). On GSM8K an answer in its own form, `#### 7`, or in
a box counts if there is no tag, and so does a number among marks or before a unit.
Standard library only; linear in the text.
"""

import re
from fractions import Fraction
from unicodedata import normalize

from mcgrpo.grade import boxes, plain

_SPACES = r"\\[,;:! ]|[~\u00a0\u2009\u202f]"
_COMMA = r"\{,\}|,\\!\s{0,3}"
_THOUSANDS = re.compile(rf"(?<![\d.,])\d{{1,3}}(?:(?:{_SPACES}|{_COMMA})\d{{3}})+(?!\d)")
_PLAIN_THOUSANDS = re.compile(r"(?<![\d.,(\[_^])(?<!\\\{)\d{1,3}(?:,\d{3})+(?=\s?(?:\\pi|\\sqrt|[A-Za-z]|(?<!\\)\}))")
_FOUR_DIGITS = re.compile(rf"\d(?:{_SPACES}|{_COMMA}|,)?\d{{3}}")
_SEPARATOR = re.compile(rf"{_SPACES}|{_COMMA}|,")
_PERCENT = re.compile(rf"(?:\s|{_SPACES}){{1,4}}(?=\\%)")
_IMAGINARY = re.compile(r"(?<=\d)(?:\s|\\[,;:! ]|\\cdot ?){0,4}i(?![A-Za-z])")
_DEGREES = re.compile(r"\^\{\s*°\s*\}|\^?°|\\degree(?![A-Za-z])")
_FULL_STOP = re.compile(r"(?<![.\\])(?<!\\left)(?<!\\right)\.(?=\s{0,9}[}$])")
_REPEATING = re.compile(r"(?<![\d.])(\d{0,18})\.(\d{0,12})\\(?:overline|bar)(?:\{(\d{1,12})\}|(\d))")
_EULER = re.compile(r"(?<![A-Za-z\\])e\s?\^\s?\{\s{0,9}-?\s{0,9}(?:i\s{0,9}\\pi|\\pi\s{0,9}i)\s{0,9}\}")
_GAP = rf"(?:\s|{_SPACES}){{0,4}}"
_IN_BRACES = rf"\{{{_GAP}(\d{{1,2}}){_GAP}\}}"
_BASE = re.compile(rf"(?<![\w.}}])(-?\d{{1,40}}){_GAP}_{_GAP}(?:{_IN_BRACES}|(\d{{1,2}})(?!\d))")
_ROOT = re.compile(r"\\sqrt ?(\d)(?!\d)|√(\d{1,18})(?![\d.])")
_VULGAR = {each: normalize("NFKC", each).split("⁄") for each in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_FRACTIONS = str.maketrans({each: f"\\frac{{{upper}}}{{{lower}}}" for each, (upper, lower) in _VULGAR.items()})
_FRACTION = re.compile(r"\\[dt]?frac ?(?:(\d)|(\{[^{}]{1,40}\})) ?(?:(\d)(?!\d)|(\{[^{}]{1,40}\}))")
_MATH = re.compile(r"(?<![\\$])\$([^$\n]{1,300})\$")
_RATIO = re.compile(r"([+-]?)(?:(\d{1,9}) )?(\d{1,9}) ?/ ?(\d{1,9})")
_HASHES = re.compile(r"####[ \t]*([^\n]{1,100})")


def rewritten(text: str, has_thousands: bool = True) -> str:
    """A text with numbers rewritten for math-verify; bases of numerals (`2010_4`) are unchanged.

    Args:
        text: a completion, a gold or its solution.
        has_thousands: whether the gold has a number of four digits: otherwise `100,200` is a list.
    """
    for grouped in (_THOUSANDS, _PLAIN_THOUSANDS) if has_thousands else (_THOUSANDS,):
        text = grouped.sub(lambda match: _SEPARATOR.sub("", match[0]), text)
    text = _IMAGINARY.sub(" i", _PERCENT.sub("", text.replace("~", " ").replace("\\varnothing", "\\emptyset")))
    text = _REPEATING.sub(_as_fraction, text)
    text = _FRACTION.sub(_in_braces, _ROOT.sub(r"\\sqrt{\1\2}", text.translate(_FRACTIONS)))
    return _EULER.sub("(-1)", _FULL_STOP.sub("", _DEGREES.sub(r"^\\circ", text)))


def pair(completion: str, answer: str, solution: str) -> tuple[str, str, str]:
    """A completion, its gold and the gold's solution, rewritten for grading.

    A numeral with a base becomes a pair, `(2010, 4)`. If the completion's answer or the gold has no base, that of the
    other is removed, as the question states which one is meant.
    """
    completion, answer, solution = (plain.with_tex_signs(text) for text in (completion, answer, solution))
    answer = plain.in_latex(plain.without_choice(answer, ""))

    def read(text: str) -> str:
        return plain.in_latex(plain.without_unit(plain.without_choice(text, answer), answer))

    solution = boxes.changed(solution, read)
    completion = boxes.with_last_boxes(completion, boxes.parts_of_gold(answer, solution))
    if boxes.closed(completion):
        completion = boxes.changed(completion, read)
    else:
        completion = _MATH.sub(lambda match: f"${read(match[1])}$", completion)
    boxed = max(completion.rfind("\\boxed"), 0)
    have_bases = _BASE.search(completion, boxed) is not None and _BASE.search(answer) is not None
    based = r"(\1, \2\3)" if have_bases else r"\1"
    has_thousands = _FOUR_DIGITS.search(answer or solution) is not None
    texts = (rewritten(text, has_thousands) for text in (completion, answer, solution))
    given, gold, whole = (_BASE.sub(based, text) for text in texts)
    return given, gold, whole


def tag(text: str) -> str:
    """The content of a tag, rewritten."""
    return rewritten(plain.with_tex_signs(text)).removesuffix("^\\circ")


def ratio(text: str) -> Fraction | None:
    """The value of `1/2` or `7 5/6`; None of other texts."""
    match = _RATIO.fullmatch(text)
    if not match or not int(match[4]):
        return None
    value = int(match[2] or 0) + Fraction(int(match[3]), int(match[4]))
    return -value if match[1] == "-" else value


def last_answer(completion: str) -> str | None:
    """The last tag that is closed; without one, the last answer in GSM8K's own form, or else the last box."""
    end = completion.rfind("</answer>")
    _, tagged, inside = completion[: max(end, 0)].rpartition("<answer>")
    if tagged:
        return inside.partition("</answer>")[0].strip()
    if answers := _HASHES.findall(completion):
        return answers[-1].strip().removesuffix(".")
    boxed = boxes.filled(completion)
    return boxed[-1].content(completion).strip() if boxed else None


def _in_braces(match: re.Match[str]) -> str:
    """`\\frac12` as `\\frac{1}{2}`: TeX takes one digit where there are no braces."""
    upper, lower = match[2] or f"{{{match[1]}}}", match[4] or f"{{{match[3]}}}"
    return f"\\frac{upper}{lower}"


def _as_fraction(match: re.Match[str]) -> str:
    whole, once, repeated = match[1] or "0", match[2], match[3] or match[4]
    tens = 10 ** len(once)
    value = Fraction(int(whole + once), tens) + Fraction(int(repeated), (10 ** len(repeated) - 1) * tens)
    return str(value) if value.denominator == 1 else f"\\frac{{{value.numerator}}}{{{value.denominator}}}"
