"""A table as it is printed, independent of LaTeX and Markdown: rows of entries, each a text with a tone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

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

    def titled(self, title: str) -> "Display":
        """The table with a caption that starts with the title, if there is one."""
        return replace(self, caption=f"{title}. {self.caption}") if title else self

    @property
    def starts(self) -> np.ndarray:
        """Lines x entries of the block: whether an entry, or one before it, differs from the line above."""
        blocks = pd.DataFrame([line.block for line in self.lines])
        return (blocks != blocks.shift()).cummax(axis=1).to_numpy()

    def rows(self) -> list[list[Entry]]:
        """All entries of all lines; entries that a block shares with the line before are blank."""
        return [
            [*(Entry(text if start else "") for text, start in zip(line.block, starts, strict=True)), *line.entries]
            for line, starts in zip(self.lines, self.starts, strict=True)
        ]

    def parts(self, rows: int) -> Sequence["Display"]:
        """The whole table, or if it has more than `rows` lines, one part for each first entry of its blocks."""
        names = list(dict.fromkeys(line.block[0] for line in self.lines))
        if len(self.lines) <= rows or len(names) == 1:
            return [self]
        lines = {name: tuple(line for line in self.lines if line.block[0] == name) for name in names}
        # Names are labels in LaTeX, where a percent sign starts a comment
        named = {f"{self.name}-{re.sub(r'[^a-zA-Z0-9_.-]+', '-', name)}": own for name, own in lines.items()}
        return [replace(self, name=name, lines=own) for name, own in named.items()]


def difference(cell: Any, field: str, note: str = "") -> Entry:
    """A cell's `difference` or `change` in points with interval, verdict, a tone by verdict, and a note.

    Also with the number of seeds, if both cells share fewer than it has.
    """
    pairs = getattr(cell, f"{field}_seeds")
    fewer = pd.notna(getattr(cell, field)) and pd.notna(pairs) and 0 < pairs < cell.seeds
    shared = f"({wording.count(int(pairs), 'shared seed')})" if fewer else ""
    text = " ".join(filter(None, (wording.gain(cell, field), note, shared)))
    return Entry(text, TONES.get(getattr(cell, f"{field}_verdict"), ""))
