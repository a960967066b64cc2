"""Generated word problems with two steps of arithmetic (in distribution) or three (out of distribution).

A *story* is a problem's operators and numbers; a *wording* is its name, item and verbs. A split is a set of stories,
chosen by a hash of the story alone: no story is in two splits, for any counts and seeds. A question is a rank in the
finite space of its split, and ranks are drawn without replacement: no question is repeated.
"""

import hashlib
import itertools
import operator
import random
from dataclasses import dataclass
from functools import cache

PEOPLE = ("Ann", "Ben", "Eve", "Leo", "Mia", "Sam", "Tom", "Zoe")
ITEMS = ("apples", "books", "cards", "coins", "eggs", "pens")
WORDS = {"+": ("buys", "finds", "gets"), "-": ("drops", "loses", "sells"), "*": ("bags", "boxes", "packs")}
LARGEST = 99

_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_TWO_STEP = {
    "+-": (range(2, 13), range(2, 13), range(1, 10)),
    "-+": (range(5, 18), range(1, 10), range(2, 13)),
    "*+": (range(2, 8), range(2, 8), range(1, 21)),
}
_NEXT = {"+-": "+", "-+": "-", "*+": "-"}
_RANGES = {
    "two-step": _TWO_STEP,
    "three-step": {ops + _NEXT[ops]: (*ranges, range(1, 10)) for ops, ranges in _TWO_STEP.items()},
}
KINDS = tuple(_RANGES)
SPLITS = ("test", "train", "warm")
"""Evaluation, reinforcement learning, and the warm start."""


@dataclass(frozen=True)
class Step:
    """One step of arithmetic, such as `5-4=1`."""

    left: int
    operator: str
    right: int
    value: int

    def __str__(self) -> str:
        return f"{self.left}{self.operator}{self.right}={self.value}"


def work(operators: str, numbers: tuple[int, ...]) -> list[Step]:
    """Apply `operators` from left to right to `numbers` (one more than there are operators)."""
    steps, value = [], numbers[0]
    for symbol, number in zip(operators, numbers[1:], strict=True):
        steps.append(Step(value, symbol, number, _ARITHMETIC[symbol](value, number)))
        value = steps[-1].value
    return steps


def slip(operators: str) -> str:
    """The operators with the first that is not an addition replaced by one."""
    mistaken = operators.lstrip("+")
    kept = len(operators) - len(mistaken)
    return "+" * (kept + 1) + mistaken[1:]


@dataclass(frozen=True)
class Problem:
    """One word problem; `words` has one word of `WORDS` for each operator."""

    name: str
    item: str
    operators: str
    words: tuple[str, ...]
    numbers: tuple[int, ...]

    @property
    def question(self) -> str:
        """The text, such as `Sam has 5 cards. Sam sells 4 and gets 5 more. How many cards?`."""
        first, *rest = self.numbers
        moves = list(zip(self.operators, self.words, rest, strict=True))
        if moves[0][0] == "*":
            _, container, each = moves.pop(0)
            start = f"{first} {container} with {each} {self.item} each"
        else:
            start = f"{first} {self.item}"
        told = [f"{word} {number}" + (" more" if symbol == "+" else "") for symbol, word, number in moves]
        sentences = [f"{self.name} has {start}."]
        sentences += [f"{self.name} {' and '.join(told[i : i + 2])}." for i in range(0, len(told), 2)]
        return " ".join([*sentences, f"How many {self.item}?"])

    @property
    def steps(self) -> list[Step]:
        """The correct steps; the last value is the answer."""
        return work(self.operators, self.numbers)

    @property
    def context(self) -> str:
        """What the probability of a wrong demonstration depends on: the first two operators and their words."""
        return "|".join([self.operators[:2], *self.words[:2]])


def problems(kind: str, split: str, count: int, seed: int) -> list[Problem]:
    """Draw `count` distinct problems of a `kind` (`two-step` or `three-step`) from a split (`test`, `train`, `warm`).

    Raises:
        ValueError: for an unknown kind or split, or a count that is negative or larger than the split's space.
    """
    if kind not in KINDS or split not in SPLITS:
        raise ValueError(f"no toy problems {kind!r} of split {split!r} (there are: {', '.join((*KINDS, *SPLITS))})")
    size = space(kind, split)
    if not 0 <= count <= size:
        raise ValueError(f"count {count} of {kind} {split} problems is not within 0..{size}")
    ranks = random.Random(f"{kind} {split} {seed}").sample(range(size), count)
    return [_problem(kind, split, rank) for rank in ranks]


def space(kind: str, split: str) -> int:
    """The number of different questions in a split."""
    stories = _stories(kind, split)
    return len(stories) * len(PEOPLE) * len(ITEMS) * len(_wordings(stories[0][0]))


def _problem(kind: str, split: str, rank: int) -> Problem:
    stories = _stories(kind, split)
    rank, story = divmod(rank, len(stories))
    rank, name = divmod(rank, len(PEOPLE))
    wording, item = divmod(rank, len(ITEMS))
    operators, numbers = stories[story]
    return Problem(PEOPLE[name], ITEMS[item], operators, _wordings(operators)[wording], numbers)


@cache
def _wordings(operators: str) -> list[tuple[str, ...]]:
    return list(itertools.product(*(WORDS[symbol] for symbol in operators)))


@cache
def _stories(kind: str, split: str) -> list[tuple[str, tuple[int, ...]]]:
    return [
        (operators, numbers)
        for operators, ranges in _RANGES[kind].items()
        for numbers in itertools.product(*ranges)
        if _split(operators, numbers) == split and _in_range(operators, numbers)
    ]


def _split(operators: str, numbers: tuple[int, ...]) -> str:
    """A fifth of the stories is for the test, two fifths for each of the others."""
    bucket = int(hashlib.sha256(f"{operators} {numbers}".encode()).hexdigest(), 16) % 100
    return "test" if bucket < 20 else "train" if bucket < 60 else "warm"


def _in_range(operators: str, numbers: tuple[int, ...]) -> bool:
    every = work(operators, numbers) + work(slip(operators), numbers)
    return all(0 <= step.value <= LARGEST for step in every)
