r"""Which `\boxed{...}` of a completion is its answer, for the protocol `robust`.

Standard library only; linear in the text.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_BOXED = re.compile(r"\\boxed(?![A-Za-z])")
_TOKENS = re.compile(r"\\boxed\s{0,9}\{|\\[{}]|[{}]")
_NOTHING = re.compile(
    r"(?:\s|[.…~]|\\[ldc]*dots|\\[,;:! ])*|(?:\\text\{)?(?:the |your )?(?:final )?answer(?: here)?\}?", re.I
)
_THOUSANDS = re.compile(r"(?<!\d)\d{1,3}(?:(?:,\\!\s{0,3}|,|\{,\})\d{3})+(?!\d)")
_SEPARATORS = re.compile(r"[,;]|\b(?:and|or)\b|\\pm|\\mp|±")
_FILL = r"(?:[\s$~{}]|\\[()\[\] ,;:]|\\q?quad|\\text)*"
_LISTED = re.compile(rf"{_FILL}(?:[,;]?{_FILL}(?:and|or)|[,;])?{_FILL}(?:[A-Za-z](?:_\{{?\w{{1,3}}\}}?)? ?= ?)?")
_LONGEST_LINK = 40


class Box(NamedTuple):
    r"""Places in a text: of `\boxed`, of the first character inside, and of the closing brace."""

    start: int
    inside: int
    end: int

    def content(self, text: str) -> str:
        """What is inside."""
        return text[self.inside : self.end]


def closed(text: str) -> list[Box]:
    """The boxes that are closed, by their start; an escaped brace is no brace."""
    found, opened = [], []
    for token in _TOKENS.finditer(text):
        if token[0] == "}":
            start, inside, is_box = opened.pop() if opened else (0, 0, False)
            found += [Box(start, inside, token.start())] if is_box else []
        elif token[0] not in ("\\{", "\\}"):
            opened.append((token.start(), token.end(), token[0] != "{"))
    return sorted(found)


def filled(text: str) -> list[Box]:
    r"""Those that hold an answer, unlike `\boxed{}` and `\boxed{\text{answer}}`; all that are closed if none does."""
    boxes = closed(text)
    return [box for box in boxes if not _NOTHING.fullmatch(box.content(text))] or boxes


def parts(answer: str) -> int:
    """How many values an answer lists, such as coordinates or solutions. A thousands comma separates none."""
    return 1 + len(_SEPARATORS.findall(_THOUSANDS.sub("0", answer)))


def parts_of_gold(answer: str, solution: str) -> int:
    """The same of a gold: its short answer, or else the boxes of its solution; 1 if there is neither."""
    if answer:
        return parts(answer)
    return sum(parts(box.content(solution)) for box in closed(solution)) or 1


def with_last_boxes(completion: str, count: int) -> str:
    r"""A completion without the command `\boxed` but at its answer; unchanged if no box is closed.

    The answer is the last box that is closed and not empty; if a gold lists `count` values, and this box fewer, it is
    the last `count` boxes, with those that are in one list with them. Boxes that are not closed, have no braces or hold
    no answer (`\boxed{}`, `\boxed{\text{answer}}`) are none.
    """
    boxes = filled(completion)
    if not boxes:
        return completion
    first = len(boxes) - 1
    if parts(boxes[-1].content(completion)) < count:
        first = max(0, len(boxes) - count)
        while first and _is_listed(completion[boxes[first - 1].end + 1 : boxes[first].start]):
            first -= 1
    kept = {box.start for box in boxes[first:]}
    return _BOXED.sub(lambda match: match[0] if match.start() in kept else "", completion)


def _is_listed(link: str) -> bool:
    """Whether the text between two boxes joins them to a list."""
    return len(link) <= _LONGEST_LINK and _LISTED.fullmatch(link) is not None


def changed(text: str, change: Callable[[str], str]) -> str:
    """A text with the contents of its closed boxes changed; of nested ones, of the innermost."""
    pieces, at = [], 0
    for box in closed(text):
        content = box.content(text)
        if "\\boxed" not in content:
            pieces += [text[at : box.start], "\\boxed{", change(content)]
            at = box.end
    return "".join([*pieces, text[at:]])
