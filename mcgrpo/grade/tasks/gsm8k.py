"""GSM8K: the answer is a number in a tag. Judged in this process, in time linear in the text. Standard library only."""

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from mcgrpo.grade import plain, robust
from mcgrpo.grade.prompts import SYSTEM_PROMPTS
from mcgrpo.grade.task import Task, gold_text, last_tag
from mcgrpo.records import Verdict

_NUMBER = re.compile(r"([+-]?)\$?([+-]?)((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?)(?:\.([0-9]*))?%?\.?")
_ANY_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_HASHES = re.compile(r"####[ \t]*[-+$]*[0-9]")


class GSM8K(Task):
    """GSM8K. A gold is the bare answer, or the text that ends in `#### answer`.

    `paper`: the answer is the content of the last `<answer>` tag. It is correct if it is the gold's string
    (with or without thousands commas), equivalent if both are numbers of the same value. GSM8K's own form, `#### 7`,
    is unparseable: the prompt asks for tags, and the release rewards nothing else.
    `released`: as the release evaluates: the last number anywhere, without its sign, for answer and gold.
    `robust`: as `paper`, but `#### 7` or a box counts if there is no closed tag, numbers are rewritten as by
    `mcgrpo.grade.robust`, and equivalent is also one among marks or before a unit (`\\$31`, `31 apples`), or as a
    fraction (`1/2`).
    """

    system_prompt = SYSTEM_PROMPTS["gsm8k"]

    def judged_as(self, protocol: str) -> str:
        """Each protocol judges in another way."""
        return protocol

    def read(self, completion: str, protocol: str) -> str | None:
        """The last tag, or the last number."""
        if protocol == "released":
            return _last_number(completion)
        if protocol == "robust":
            extracted = robust.last_answer(completion)
            return extracted and robust.tag(extracted)
        return last_tag(completion)

    def gold(self, answer: str, protocol: str) -> str | None:
        """The short answer, or its last number."""
        return _last_number(gold_text(answer)) if protocol == "released" else gold_text(answer)

    def compare(self, extracted: str, gold: str, protocol: str) -> Verdict:
        """By text, then by value."""
        if extracted in (gold, gold.replace(",", "")):
            return "correct"
        value, known = _value(extracted, protocol), _value(gold, protocol)
        return "equivalent" if value is not None and value == known else "wrong"

    def is_plain(self, gold: str) -> bool:
        """Whether it is a number."""
        return to_decimal(gold) is not None

    def remark(self, unparseable: Sequence[str]) -> str | None:
        """How many have an answer in GSM8K's own form, `#### 7`."""
        count = sum(_HASHES.search(completion) is not None for completion in unparseable)
        return f"{count} of the unparseable completions hold an answer as GSM8K's own, `#### 7`" if count else None


def _value(text: str, protocol: str) -> Decimal | Fraction | None:
    """The number that a text is; under `robust` also one with marks and a unit, and a fraction."""
    value = to_decimal(text)
    if value is not None or protocol != "robust":
        return value
    bare = plain.bare_number(text)
    value = to_decimal(bare)
    return robust.ratio(bare) if value is None else value


def to_decimal(text: str) -> Decimal | None:
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
