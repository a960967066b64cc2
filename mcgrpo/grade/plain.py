r"""Answers as people write them without LaTeX, for the protocol `robust`: `pi/2`, `7 5/6`, `x²`, `(B) 12`, `$31 each`.

Standard library only. What is rewritten has at most `MOST` characters, so that its time is bounded.
"""

import re
from collections.abc import Callable

MOST = 300
"""Longer answers are not rewritten."""

_SIGNS = str.maketrans({
    "−": "-", "·": "\\cdot ", "⋅": "\\cdot ", "×": "\\times ", "÷": "/", "⁄": "/", "∞": "\\infty ",
    "π": "\\pi ", "θ": "\\theta ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "±": "\\pm ", "∪": "\\cup ", "∩": "\\cap ",
    "∈": "\\in ", "∅": "\\emptyset ", "ℝ": "\\mathbb{R}",
})  # fmt: skip
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ"
_LEVEL = str.maketrans(_RAISED, "0123456789+-n")
_POWER = re.compile(f"[{_RAISED}]+")
_EN_DASH = re.compile(r"(?<![\w)}])–(?=\d)")
_ROOT = re.compile(r"√(?=[({])|√([A-Za-z])")

_WORDING = re.compile(r"(\\(?:text[a-z]*|mathrm|mbox|operatorname) ?\{[^{}]*\})")
_MAGNITUDES = {"dozen": "12", "hundred": "10^{2}", "thousand": "10^{3}", "million": "10^{6}", "billion": "10^{9}",
               "trillion": "10^{12}"}  # fmt: skip
_POWER_WORDS = rf"(?:(?:\s|~|\\ |-){{0,9}}(?:{'|'.join(_MAGNITUDES)})(?![A-Za-z]))+"
_MAGNITUDE = re.compile(
    rf"(?<=[\d}}])(?:\s|~|\\[ ,;]){{0,9}}\\(?:text|textrm|textbf|mathrm|mbox) ?\{{({_POWER_WORDS})([^{{}}]*)\}}",
    re.IGNORECASE,
)
_CALL = re.compile(r"(?<![A-Za-z\\])(sqrt|cbrt) ?\(|(\^) ?\(")
_OPENINGS = {"sqrt": "\\sqrt{", "cbrt": "\\sqrt[3]{", "^": "^{"}
_MIXED = re.compile(r"(?<![\w.,/^{}\\)])(-?\d{1,9})(?:[ ~]|\\ )+([1-9]\d?)/([1-9]\d{0,2})(?![\w/.^!])")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+\.\d+|\d+(?=E))[eE]([+-]?\d{1,4})(?![\w.])")
_WORDS = {"infinity": "infty", "inf": "infty"}
_REWRITES: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<![\\^_{])\*"), r"\\cdot "),
    (re.compile(r"\^ ?(-\d{1,9}|-[a-z])(?![\w.])"), r"^{\1}"),
    (re.compile(r"(?<![A-Za-z\\])sqrt ?\{"), r"\\sqrt{"),
    (re.compile(r"(?<![A-Za-z\\])sqrt ?(\d+|[a-z](?![A-Za-z]))"), r"\\sqrt{\1}"),
    (
        re.compile(
            r"(?<![A-Za-z\\])(pi|theta|alpha|beta|gamma|delta|lambda|mu|rho|sigma|tau|phi|omega|infinity|infty|inf)(?![A-Za-z])"
        ),
        lambda match: f"\\{_WORDS.get(match[1], match[1])} ",
    ),
    (
        re.compile(r"(?<![A-Za-z\\])((?:arc)?(?:sin|cos|tan)|cot|sec|csc|ln|log|exp)(?= ?[({^_\d\\]| [a-z](?![a-z]))"),
        r"\\\1",
    ),
    (_SCIENTIFIC, r"\1\\times 10^{\2}"),
    (_MIXED, lambda match: f"{match[1]}\\frac{{{match[2]}}}{{{match[3]}}}"),
)

_GAP = r"(?:\s|~|\\[ ,;:!]|\\q?quad(?![A-Za-z])|:)*"
_VALUE = r"(?P<value>(?!\\cdot|\\times)[^\s^_=+*/].*)"
_BOLD = r"\\(?:text|textbf|textrm|mathbf|mathrm|bf) ?\{ ?"
_CHOICES = [
    re.compile(rf"{_GAP}{_BOLD}\(?([A-E])[).:]{{0,2}} ?\}}{_GAP}{_VALUE}", re.DOTALL),
    re.compile(rf"{_GAP}{_BOLD}\(?([A-E])[).:]{{1,2}}{_GAP}(?P<value>[^{{}}]+)\}}{_GAP}", re.DOTALL),
    re.compile(rf"{_GAP}(?:\(([A-E])\)|([A-E])[).:]){_GAP}{_VALUE}", re.DOTALL),
]
_LETTER = re.compile(rf"{_GAP}(?:{_BOLD})?\(?([A-E])\)?\.? ?\}}?{_GAP}")
_CHOICE = re.compile(rf"{_GAP}(?:{_BOLD})?(?:Option |option )?\(?([A-E])[).:]{{0,2}} ?\}}?{_GAP}")
_HAS_LETTER = re.compile(r"(?<![A-Za-z\\])[A-E](?![A-Za-z])")

_WRAPPED = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\$([^$]*)\$", r"\\\((.*)\\\)", r"\\\[(.*)\\\]", r"\*\*(.*)\*\*", r"\\boxed ?\{(.*)\}",
        r"\\(?:text|textbf|mathrm|mathbf) ?\{([^{}]*)\}", r"\(([^()]*)\)",
        r"(?:[Tt]he )?(?:[Ff]inal )?[Aa]nswer(?: is|:) ?(.*)", r"\$([\d.,/ ]+)\$( [A-Za-z].*)",
        r"\\boxed ?\{([^{}]*)\}( .*)",
    )
]  # fmt: skip
_UNIT_IN_TEX = re.compile(r"\\(?:text|textrm|mathrm|mbox) ?\{([^{}]*)\}")
_NUMBER = re.compile(
    r"(?:(?:[A-Za-z] ?)?= ?)?([+-]?) ?(?:[$€£¥] ?)?([+-]?)"
    r"((?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?: ?/ ?\d{1,9})?|\d{1,9} [1-9]\d?/[1-9]\d{0,2})"
    r"(?P<unit>[ -]?[A-Za-z°%€$£¥](?:[A-Za-z°%/().' -]|\^\{?[23]\}?)*)?"
)
_NO_UNITS = (
    "and|or|to|plus|minus|by|divided|tens|(?:hundred|thousand|million|billion|trillion|quadrillion)s?|lakhs?|crores?|grand|"
    "mil|mill|bil|doz|dozens?|score|gross|hal(?:fs?|ves)|(?:hundred|thousand|million|billion)ths?|squared|cubed|doubled|tripled|"
    "factorials?|negatives?|below|mn|bn"
)
_NUMERALS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    "(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
)
_BEFORE_NUMERALS = "times|point|root|out of|foot|feet|hours?|minutes?|dollars?|pounds?|degrees under"
_SHARES = "third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|twentieth|[a-z]{3,6}teenth"
_CHANGES = re.compile(
    rf"(?<![A-Za-z])(?:(?i:{_NO_UNITS})|[kKMBxX]s?|(?<!of )[Pp]i|(?i:quarters?)(?=[^A-Za-z]*$|[ -](?:of|hour))|"
    rf"(?i:(?:{_SHARES})s)|(?i:{_SHARES})(?=[^A-Za-z]*$| of )|"
    rf"(?i:{_BEFORE_NUMERALS}) (?i:{_NUMERALS})(?!-)|(?:over|than) (?i:{_NUMERALS})(?=[^A-Za-z]*$))(?![A-Za-z])"
)
"""What changes the value of the number before it: `3 thirds of a cup` and `4 times five`, not `3 third graders`."""
_MORE = re.compile(rf"[ ,-]*(?:and )?(?:a )?(?i:{_NUMERALS}|{'|'.join(_MAGNITUDES)}|half|quarter|third)(?![A-Za-z-])")
"""More of a number, after `million`: `five hundred`, `and a half`."""


def with_tex_signs(text: str) -> str:
    """A text whose mathematical characters are LaTeX; linear in the text."""
    text = _EN_DASH.sub("-", text)
    text = _ROOT.sub(lambda match: f"\\sqrt{{{match[1]}}}" if match[1] else "sqrt", text.translate(_SIGNS))
    return _POWER.sub(lambda match: f"^{{{match[0].translate(_LEVEL)}}}", text)


def in_latex(answer: str) -> str:
    """An answer in plain text (`sqrt(3)/2`) in LaTeX; words in `\\text{...}` stay."""
    if len(answer) > MOST:
        return answer
    answer = _MAGNITUDE.sub(_as_powers, answer)
    return "".join(each if place % 2 else _in_latex(each) for place, each in enumerate(_WORDING.split(answer)))


def _as_powers(match: re.Match[str]) -> str:
    """`\\text{ hundred thousand dollars}` as powers of ten; times a symbol, and so no number, before more of one."""
    powers = "".join(f"\\cdot {_MAGNITUDES[each]}" for each in re.findall(r"[a-z]+", match[1].lower()))
    return powers + ("\\cdot n" if _MORE.match(match[2]) else "")


def _in_latex(text: str) -> str:
    for call in reversed([*_CALL.finditer(text)]):  # inner ones first
        end = _closing(text, call.end())
        if end is not None:
            text = f"{text[: call.start()]}{_OPENINGS[call[1] or call[2]]}{text[call.end() : end]}}}{text[end + 1 :]}"
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text


def _closing(text: str, start: int) -> int | None:
    """The place of the parenthesis that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    return None


def without_choice(answer: str, gold: str) -> str:
    r"""`\textbf{(B)}\ 12` as `12`, or as `\text{B}` if the gold is a letter; unchanged if the gold has a letter."""
    if len(answer) > MOST:
        return answer
    alone = _CHOICE.fullmatch(answer)
    if alone and _LETTER.fullmatch(gold):
        return f"\\text{{{alone[1]}}}"
    match = next(filter(None, (pattern.fullmatch(answer) for pattern in _CHOICES)), None)
    if match is None:
        return answer
    if _LETTER.fullmatch(gold):
        others = _HAS_LETTER.search(match["value"])  # two choices are none
        return answer if others else f"\\text{{{next(filter(None, match.groups()))}}}"
    return answer if _HAS_LETTER.search(gold) else match["value"]


def bare_number(text: str) -> str:
    """A number without the marks around it and the unit behind it: `31`, `1/2` or `7 5/6`; other texts as they are."""
    if len(text) > MOST:
        return text
    bare = text.strip()
    for pattern in 3 * _WRAPPED:
        if match := pattern.fullmatch(bare.removesuffix(".").strip()):
            bare = "".join(match.groups()).strip()
    for old, new in {"{,}": ",", "\\$": "$", "\\%": "%", "\\ ": " ", "~": " ", "\\,": " ", "^\\circ": "°"}.items():
        bare = bare.replace(old, new)
    bare = re.sub(r"\\[dt]?frac ?\{(\d{1,9})\} ?\{(\d{1,9})\}", r" \1/\2", _UNIT_IN_TEX.sub(r" \1", bare)).strip()
    match = _NUMBER.fullmatch(re.sub(r"([+-]) (?=\d)", r"\1", " ".join(bare.split())).removesuffix("."))
    if not match or not re.search(r"\d", match[3]) or (match[1] and match[2]):
        return text
    if _CHANGES.search(match["unit"] or ""):
        return text
    return f"{match[1]}{match[2]}{match[3].strip()}"


_WITH_UNIT = re.compile(r"(?P<number>(?:\\?\$ ?)?[-+]?(?:[\d.,/]|\{,\})+)(?: |\\[ ,]|~)(?P<unit>[A-Za-z]{2,}.*)")
_IN_GOLD = re.compile(rf"\\[dt]?frac|{_UNIT_IN_TEX.pattern}")
_PERCENT = re.compile(r"percent(?![A-Za-z])", re.IGNORECASE)
_SHORT_UNITS = (
    "am|an|as|at|by|cL|cm|cu|dm|ft|GB|ha|hr|hrs|Hz|in|is|kg|kHz|km|kph|kW|kWh|lb|lbs|MB|mg|mi|ml|mL|mm|mo|mph|nm|ns|of|on|oz|"
    "Pa|pm|ppm|AM|PM|pt|pts|qt|qts|rpm|sq|to|wk|wks|yd|yds"
)
_FUNCTIONS = "arccos|arcsin|arctan|choose|cosh?|cot|exp|log|mod|root|sinh?|sqrt|tanh?"
_PRODUCT = re.compile(
    rf"(?!(?:{_SHORT_UNITS})(?![A-Za-z]))(?:[A-Za-z]{{2}}|[^\WaeiouyAEIOUY\d_]{{3}}|abc|xyz)(?![A-Za-z])|"
    rf"(?:.*[^A-Za-z])?(?:(?:{_FUNCTIONS})(?= [a-z](?![A-Za-z])|\W*$)|"
    r"(?:(?:over|times|plus|minus|than) |/ ?(?![hms](?![A-Za-z])))[A-Za-z](?![A-Za-z]))"
)
"""What is a product or a function behind a number, and no unit: `5 xy`, `7 mod n` and `6 times n`, but `5 km/h`."""


def without_unit(answer: str, gold: str) -> str:
    """`36 dollars` or `15 cm^2` as its number, if the gold is one (its unit aside): `5 xy` and `2 pi r` stay."""
    match = _WITH_UNIT.fullmatch(answer.strip()) if len(answer) <= MOST else None
    if not match or re.search(r"[A-Za-z]", _IN_GOLD.sub("", gold)):
        return answer
    if _PERCENT.match(match["unit"]):  # math-verify reads 10% as 10 or 0.1, and 2.5% as 0.025 alone
        return match["number"] if match["number"] == gold else answer
    if _PRODUCT.match(match["unit"]) or in_latex(answer) != answer:
        return answer
    return bare_number(answer)
