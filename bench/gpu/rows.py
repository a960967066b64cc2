"""A row of the table."""

from typing import NamedTuple


class Row(NamedTuple):
    """One finding: a part of the check, what was looked at, and a quantity of it with its unit in the name."""

    part: str
    case: str = ""
    quantity: str = ""
    value: str | float = ""
    status: str = "ok"
    note: str = ""

    def __str__(self) -> str:
        value = f"{self.value:.4g}" if isinstance(self.value, float) else self.value
        return f"{self.status:8} {self.part:11} {self.case:40} {self.quantity:22} {value} {self.note}".rstrip()
