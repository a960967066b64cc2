"""What a check finds."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "lacking"]
"""`lacking`: the study cannot run to its end here. `warning`: it can, or might, but look at it first."""


@dataclass(frozen=True)
class Check:
    """One line: what was looked at, what was found, and what to do about it."""

    status: Status
    topic: str
    finding: str
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f" -> {self.remedy}" if self.remedy else ""
        return f"{self.status:8} {self.topic:9} {self.finding}{remedy}"


def summary(checks: Iterable[Check]) -> str:
    """How many of each, in one line."""
    found = [check.status for check in checks]
    if "lacking" not in found and "warning" not in found:
        return f"All {len(found)} checks are fine."
    return f"{found.count('lacking')} lacking, {found.count('warning')} to look at, {found.count('ok')} fine."
