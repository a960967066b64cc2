"""Demonstrations for the warm start: right in format, not always in arithmetic and wording, so that RL can improve."""

import random
from dataclasses import dataclass

from mcgrpo.data.toy.task import Problem, slip, work

OPEN_REASONING, CLOSE_REASONING = "<reasoning>", "</reasoning>"
OPEN_ANSWER, CLOSE_ANSWER = "<answer>", "</answer>"
OPEN_BOX, CLOSE_BOX = "\\boxed{", "}"


@dataclass(frozen=True)
class Habits:
    """Probabilities of the demonstrator's choices.

    An answer is `6` with probability `bare`, `6.0` with `decimal`, and `6 cards` otherwise; with `boxed` it is also
    boxed. A two-step problem is solved wrongly with a probability that is fixed per context and uniform in
    `slip_low`..`slip_high` over contexts; for a three-step problem it is 1.5 times as high.
    """

    bare: float = 0.55
    decimal: float = 0.25
    boxed: float = 0.4
    slip_low: float = 0.0
    slip_high: float = 0.8

    def slip_rate(self, problem: Problem) -> float:
        """Probability of a wrong solution in this context; the same in every process."""
        at_two_steps = random.Random(problem.context).uniform(self.slip_low, self.slip_high)
        return min(1.0, at_two_steps * len(problem.operators) / 2)


def demonstrate(problem: Problem, rng: random.Random, habits: Habits) -> str:
    """One demonstration, such as `<reasoning>5-4=1;1+5=6</reasoning><answer>6</answer>`."""
    slips = rng.random() < habits.slip_rate(problem)
    steps = work(slip(problem.operators) if slips else problem.operators, problem.numbers)
    value = steps[-1].value
    boxed = f";{OPEN_BOX}{value}{CLOSE_BOX}" if rng.random() < habits.boxed else ""
    reasoning = ";".join(map(str, steps)) + boxed
    answer = _answer(value, problem.item, rng.random(), habits)
    return f"{OPEN_REASONING}{reasoning}{CLOSE_REASONING}{OPEN_ANSWER}{answer}{CLOSE_ANSWER}"


def _answer(value: int, item: str, draw: float, habits: Habits) -> str:
    if draw < habits.bare:
        return str(value)
    if draw < habits.bare + habits.decimal:
        return f"{value}.0"
    return f"{value} {item}"
