"""The identity of a cell: the trainings that differ in their seed alone, measured in one way on one benchmark."""

import re
from typing import Any, NamedTuple

from mcgrpo.analyse.measures import ACCURACIES, decoding_of
from mcgrpo.records import Decoding, Role
from mcgrpo.study.methods import METHODS, UNTRAINED, method_order
from mcgrpo.study.variants import DEFAULT


class CellKey(NamedTuple):
    """A cell on a benchmark, by a measure; its fields are in the order in which the summary is sorted.

    The measure is empty where all measures are meant, the setting where the paper names none.
    """

    setting: str
    variant: str
    role: Role
    benchmark: str
    measure: str
    num_generations: int
    method: str

    @classmethod
    def of(cls, row: Any) -> "CellKey":
        """The key of a row that has these fields as attributes."""
        return cls(*(getattr(row, name) for name in cls._fields))

    def __str__(self) -> str:
        return ", ".join(f"{field} {value}" for field, value in self._asdict().items() if value != "")

    @property
    def without_measure(self) -> "CellKey":
        """The cell on its benchmark, for all measures."""
        return self._replace(measure="")

    def of_training(self, measure: str) -> "CellKey":
        """The same trainings, by a measure of their own."""
        return self._replace(role="train", benchmark="train", measure=measure)

    @property
    def is_evaluation(self) -> bool:
        """Whether it is measured on completions of a final model."""
        return self.role in ("in", "out")

    @property
    def is_accuracy(self) -> bool:
        """Whether more is better, and the unit a share of problems."""
        return self.is_evaluation and re.fullmatch(ACCURACIES, self.measure) is not None

    @property
    def decoding(self) -> Decoding | None:
        """How the completions were drawn; None of what is not an evaluation."""
        return decoding_of(self.measure) if self.is_evaluation else None

    @property
    def block(self) -> tuple[str, str, str, str]:
        """What cells that are compared share."""
        return self.setting, self.role, self.benchmark, self.measure

    @property
    def order(self) -> tuple:
        """The key to sort by; an unknown method is an error."""
        return (*self[:-1], method_order(self.method))

    @property
    def baseline(self) -> "CellKey | None":
        """The cell that `difference` is taken from."""
        name = METHODS[self.method].baseline if self.method != UNTRAINED else None
        return self._replace(method=name) if name else None

    @property
    def mean_centred(self) -> "CellKey":
        """The cell of the mean-centred method of the same loss, under the variant `default`; it may be this one."""
        return (self.baseline or self)._replace(variant=DEFAULT)

    @property
    def default(self) -> "CellKey | None":
        """The cell that `change` is taken from."""
        return self._replace(variant=DEFAULT) if self.variant != DEFAULT else None
