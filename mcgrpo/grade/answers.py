"""Extract answers, and judge those that plain text decides. Standard library only.

GSM8K is judged here, in time linear in the text. MATH (also AIME and AMC) needs a computer algebra system, which must
not read model output in this process: see `mcgrpo.grade.verifier`.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from mcgrpo.grade import plain, robust
from mcgrpo.records import Verdict

TASKS = ("gsm8k", "math")
MAX_EXTRACTED = 500
"""Maximum length of an extracted answer in logs and files; verdicts use the whole answer."""

_NUMBER = re.compile(r"([+-]?)\$?([+-]?)((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?)(?:\.([0-9]*))?%?\.?")
_ANY_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_HASHES = re.compile(r"####[ \t]*[-+$]*[0-9]")
_WHOLE_FLOAT = re.compile(r"(-?[0-9]+)\.0*")


@dataclass(frozen=True)
class Judgement:
    """The verdict on one completion, and the extracted answer (at most `MAX_EXTRACTED` characters).

    If `gold_parsable` is false, there was nothing to compare with and the verdict is `unparseable`, whatever the
    completion. Such rows are counted separately; the paper gives them a constant reward (`mcgrpo.grade.rewards`).
    `note` states that a completion was not read.
    """

    verdict: Verdict
    extracted: str | None
    gold_parsable: bool = True
    note: str | None = None


def judge_gsm8k(completion: str, answer: str, protocol: str = "paper") -> Judgement:
    """Judge a completion against a GSM8K gold (the bare answer, or the text that ends in `#### answer`).

    `paper`: the answer is the content of the last `<answer>` tag. It is correct if it is the gold's string
    (with or without thousands commas), equivalent if both are numbers of the same value. GSM8K's own form, `#### 7`,
    is unparseable: the prompt asks for tags, and the release rewards nothing else.
    `released`: as the release evaluates: the last number anywhere, without its sign, for answer and gold.
    `robust`: as `paper`, but `#### 7` counts if there is no tag, numbers are rewritten as by `mcgrpo.grade.robust`, and
    equivalent is also one among marks or before a unit (`\\$31`, `31 apples`), or as a fraction (`1/2`).
    """
    gold, extracted = gold_text(answer), last_tag(completion)
    if protocol == "released":
        gold, extracted = _last_number(gold), _last_number(completion)
    elif protocol == "robust":
        extracted = extracted if extracted is not None else robust.hashes(completion)
        extracted = extracted and robust.tag(extracted)
    if not gold:
        return Judgement("unparseable", presentable(extracted), gold_parsable=False)
    if extracted is None:
        return Judgement("unparseable", None)
    if extracted in (gold, gold.replace(",", "")):
        verdict: Verdict = "correct"
    else:
        value, known = _value(extracted, protocol), _value(gold, protocol)
        verdict = "equivalent" if value is not None and value == known else "wrong"
    return Judgement(verdict, presentable(extracted))


def _value(text: str, protocol: str) -> Decimal | Fraction | None:
    """The number that a text is; under `robust` also one with marks and a unit, and a fraction."""
    value = number(text)
    if value is not None or protocol != "robust":
        return value
    bare = plain.bare_number(text)
    value = number(bare)
    return robust.ratio(bare) if value is None else value


def has_hashes(completion: str) -> bool:
    """Whether a completion has an answer in GSM8K's own form, `#### 7`."""
    return _HASHES.search(completion) is not None


def last_tag(completion: str) -> str | None:
    """The stripped content of the last `<answer>` tag; None if there is none, or it is not closed."""
    _, tag, rest = completion.rpartition("<answer>")
    inside, closing, _ = rest.partition("</answer>")
    return inside.strip() if tag and closing else None


def number(text: str) -> Decimal | None:
    """The exact value of a text that is a single number; else None.

    Thousands commas, a leading $ and a trailing % or full stop are allowed. Linear in the text, unlike `int`.
    """
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        return None
    before, after, whole, fraction = match.groups()
    if (before and after) or not (whole or fraction):
        return None
    return Decimal(f"{before}{after}{whole.replace(',', '')}.{fraction or ''}")


def _last_number(text: str) -> str | None:
    numbers = _ANY_NUMBER.findall(text.translate({ord(sign): None for sign in "$%,"}))
    return numbers[-1] if numbers else None


def gold_text(answer: str | int | float) -> str:
    """A gold as a short string: the text after the last `####`, with 27.0 (AMC's floats) as `27`."""
    text = str(answer).rpartition("####")[2].strip()
    whole = _WHOLE_FLOAT.fullmatch(text)
    return whole[1] if whole else text


def is_boxed(completion: str) -> bool:
    r"""Whether the completion has a nonempty `\boxed{...}`: the paper's format, as its release tests it.

    Linear: a box that is not closed ends the search, as no later one can be closed either.
    """
    start = completion.find("\\boxed{")
    while start >= 0:
        end = completion.find("}", start)
        if end < 0:
            return False
        if end > start + len("\\boxed{"):
            return True
        start = completion.find("\\boxed{", end)
    return False


def presentable(text: str | None) -> str | None:
    """A text that can be logged and stored: at most `MAX_EXTRACTED` characters, no lone surrogates, no NUL."""
    if text is None:
        return None
    return text[:MAX_EXTRACTED].encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
