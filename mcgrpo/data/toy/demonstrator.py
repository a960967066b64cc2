"""Demonstrations for the warm start: right in format, not always in arithmetic and wording, so that RL can improve."""

import random
from collections.abc import Sequence

from mcgrpo.data.toy.task import Problem, slip, work

MARKUP = ("<reasoning>", "</reasoning>", "<answer>", "</answer>", "\\boxed{", "}")
BARE, DECIMAL, BOXED = 0.55, 0.25, 0.4
"""Probabilities of the answer `6`, of `6.0` (it is `6 cards` otherwise), and that it is also boxed."""


def slip_rate(problem: Problem, slips: Sequence[float]) -> float:
    """Probability of a wrong solution: fixed per context and uniform in `slips` over contexts, the same everywhere.

    That of a three-step problem is 1.5 times as high.
    """
    at_two_steps = random.Random(problem.context).uniform(*slips)
    return min(1.0, at_two_steps * len(problem.operators) / 2)


def demonstrate(problem: Problem, rng: random.Random, slips: Sequence[float]) -> str:
    """One demonstration, such as `<reasoning>5-4=1;1+5=6</reasoning><answer>6</answer>`; `slips` as in `slip_rate`."""
    wrong = rng.random() < slip_rate(problem, slips)
    steps = work(slip(problem.operators) if wrong else problem.operators, problem.numbers)
    value = steps[-1].value
    boxed = f";\\boxed{{{value}}}" if rng.random() < BOXED else ""
    reasoning = ";".join(map(str, steps)) + boxed
    answer = _answer(value, problem.item, rng.random())
    return f"<reasoning>{reasoning}</reasoning><answer>{answer}</answer>"


def _answer(value: int, item: str, draw: float) -> str:
    if draw < BARE:
        return str(value)
    return f"{value}.0" if draw < BARE + DECIMAL else f"{value} {item}"
