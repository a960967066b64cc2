"""A file of an archive against the one that was made again: words equal, numbers within a tolerance."""

import math
import re
from itertools import zip_longest
from pathlib import Path

TOLERANCE = 1e-6
"""Relative and absolute: other versions of numpy sum in another order."""
NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[+-]?\d+)?)")


def difference(made: Path, archived: Path, words: bool = True) -> str:
    """How an archived file differs from the one that was made again; empty where it does not.

    Args:
        words: whether files for people are compared, which another version of mcgrpo may word otherwise.
    """
    if not archived.is_file():
        return "not in the archive"
    if not made.is_file():
        return "the archive holds nothing that it is made of"
    if made.suffix in (".md", ".tex") and not words:
        return ""
    lines = zip_longest(*(path.read_text(encoding="utf-8").splitlines() for path in (made, archived)))
    odd = (number for number, (ours, theirs) in enumerate(lines, 1) if not _agree(ours, theirs))
    return f"line {number} differs" if (number := next(odd, None)) else ""


def _agree(ours: str | None, theirs: str | None) -> bool:
    if ours == theirs or ours is None or theirs is None:
        return ours == theirs
    pairs = zip_longest(NUMBER.split(ours), NUMBER.split(theirs))
    return all(mine == other or _close(mine, other) for mine, other in pairs)


def _close(ours: str | None, theirs: str | None) -> bool:
    numbers = [each is not None and NUMBER.fullmatch(each) for each in (ours, theirs)]
    return all(numbers) and math.isclose(float(ours), float(theirs), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
