"""A line of the report on an archive."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mcgrpo.commands.evidence.unpack import printable
from mcgrpo.files import RecordError
from mcgrpo.study.check import StudyError

SHOWN = 20
"""Culprits of one check that are printed."""


@dataclass(frozen=True)
class Check:
    """What was looked at and what was found; with every culprit on a line of its own below.

    Whatever an archive says is printed without control characters, so that it cannot write a line of its own.
    """

    topic: str
    finding: str
    culprits: tuple[str, ...] = ()
    status: Literal["ok", "note", "FAILED"] = "ok"

    def __str__(self) -> str:
        more = len(self.culprits) - SHOWN
        below = [*self.culprits[:SHOWN], *([f"... and {more} more"] if more > 0 else [])]
        first = f"{self.status:7}{self.topic:9} {printable(self.finding)}"
        return "\n".join([first, *(f"{'':17}{printable(line)}" for line in below)])


def judged(topic: str, fine: str, bad: str, culprits: Sequence[str]) -> Check:
    """Fine where there are no culprits."""
    return Check(topic, bad, tuple(culprits), "FAILED") if culprits else Check(topic, fine)


def failed(topic: str, error: BaseException, folder: Path, finding: str = "cannot be read") -> Check:
    """A check that came to no end, and why; the unpacked archive's folder is not named."""
    text = str(error).replace(f"{folder}/", "")
    told = text if isinstance(error, RecordError | StudyError | SystemExit) else f"{type(error).__name__}: {text}"
    return Check(topic, finding, (told,), "FAILED")
