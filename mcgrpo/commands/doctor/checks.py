"""The result of a check."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

Status = Literal["ok", "warning", "error"]
"""`error`: the study cannot finish on this machine. `warning`: it can or might."""


class Check(NamedTuple):
    """One line: what was checked, the finding, and a remedy."""

    status: Status
    topic: str
    finding: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.status:8} {self.topic:9} {self.finding}" + (f" -> {self.remedy}" if self.remedy else "")


def summary(checks: Iterable[Check]) -> str:
    """How many checks have which status, in one line."""
    statuses = [check.status for check in checks]
    counts = [f"{statuses.count(status)} {status}" for status in ("error", "warning", "ok") if status in statuses]
    return f"{len(statuses)} checks: {', '.join(counts)}."
