"""Toy problems as examples of a data set."""

import hashlib
import random
from collections.abc import Sequence

from mcgrpo.data.toy.demonstrator import demonstrate
from mcgrpo.data.toy.task import Problem, problems
from mcgrpo.records import Example


def examples(kind: str, split: str, count: int, seed: int, slips: Sequence[float] | None = None) -> list[Example]:
    """Problems as records: `answer` is a bare integer in 0..99, `solution` the worked steps joined by `;`.

    With `slips`, two shares, the solutions of the split `warm` are demonstrations, wrong in a share between these.

    Raises:
        ValueError: as `problems` does, and for slips that are not `0 <= low <= high <= 1`.
    """
    if slips and not 0 <= slips[0] <= slips[1] <= 1:
        raise ValueError(f"toy.slips {[*slips]}: two shares within 0..1 are needed, the lower one first")

    def solution(problem: Problem) -> str:
        if slips is None or split != "warm":
            return ";".join(map(str, problem.steps))
        return demonstrate(problem, random.Random(f"{seed} {problem.question}"), slips)

    return [
        Example(
            id=hashlib.sha256(problem.question.encode()).hexdigest()[:16],
            split=split,
            question=problem.question,
            answer=str(problem.steps[-1].value),
            solution=solution(problem),
        )
        for problem in problems(kind, split, count, seed)
    ]
