"""A table as it is printed, independent of LaTeX and Markdown: rows of entries, each a text with a tone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from mcgrpo.report import wording

Tone = Literal["", "above", "below"]
"""Whether a number is significantly above or below zero."""
TONES: dict[str, Tone] = {"better": "above", "worse": "below"}
"""By verdict."""


class Entry(NamedTuple):
    """One table cell; plain text."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Line:
    """One row: `block` has the first entries, printed only when they change; rows of the median are `shaded`."""

    block: tuple[str, ...]
    entries: tuple[Entry, ...]
    shaded: bool = False


@dataclass(frozen=True)
class Display:
    """One table, with a heading for each entry of block and row; the caption is plain text.

    A rule is drawn above a line if one of the first `ruled` entries of its block changes.
    """

    name: str
    caption: str
    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    ruled: int = 2

    def rows(self) -> list[list[Entry]]:
        """All entries of all lines; entries that a block shares with the line before are blank."""
        blocks = [(), *(line.block for line in self.lines)]
        return [
            [*_changes(line.block, before), *line.entries] for line, before in zip(self.lines, blocks, strict=False)
        ]

    def breaks(self) -> dict[int, int]:
        """The lines, except the first, that start a block, with the number of entries shared with the line before."""
        pairs = enumerate(pairwise(line.block for line in self.lines), 1)
        return {place: _shared(before, block) for place, (before, block) in pairs if before != block}

    def parts(self, rows: int) -> Sequence["Display"]:
        """The whole table, or if it has more than `rows` lines, one part for each first entry of its blocks."""
        names = list(dict.fromkeys(line.block[0] for line in self.lines))
        if len(self.lines) <= rows or len(names) == 1:
            return [self]
        return [
            replace(
                self,
                name=f"{self.name}-{name}",
                lines=tuple(line for line in self.lines if line.block[0] == name),
            )
            for name in names
        ]


def _shared(before: tuple[str, ...], block: tuple[str, ...]) -> int:
    """The number of leading entries that two blocks share."""
    return next((place for place, (a, b) in enumerate(zip(before, block, strict=False)) if a != b), len(before))


def _changes(block: tuple[str, ...], before: tuple[str, ...]) -> list[Entry]:
    same = _shared(before, block)
    return [Entry("" if place < same else text) for place, text in enumerate(block)]


def difference(cell: Any, field: str, note: str = "") -> Entry:
    """A cell's `difference` or `change` in points with interval, verdict, a tone by verdict, and a note."""
    text = wording.gain(cell, field)
    return Entry(f"{text} {note}" if note else text, TONES.get(getattr(cell, f"{field}_verdict"), ""))
