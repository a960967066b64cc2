"""What a benchmark's verdicts amount to: accuracy, pass@k, majority votes. Pure functions, standard library only.

Every measure is a mean over problems, and keeps the value of each problem. Fractions are in [0, 1].
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mcgrpo.files import RecordError, as_record, iter_json_lines
from mcgrpo.grade.rewards import is_accurate
from mcgrpo.records import Decoding, Grade
from mcgrpo.sums import check_seal

Problem = Sequence[Grade]
"""The grades of one problem's completions, drawn in one way."""
Problems = dict[str, Problem]
"""By id, in the order of the benchmark."""
RATES = ("unparseable", "timeout", "error")
"""Verdicts whose rate is a measure."""
NAMES = r"(exact-|robust-)?(greedy|avg@\d+)|released-(greedy|any@\d+)|pass@\d+|maj@\d+|rate-({})".format(
    "|".join(RATES)
)
"""What measures are called: a pattern."""
Definition = tuple[str, Callable[[Problem], float], Problems]
"""A measure: its name, its value for a problem, and the problems."""


class Measure(NamedTuple):
    """A named value for each problem, in the order of their ids (`problems`, hashed)."""

    name: str
    values: list[float]
    problems: str


def right(problem: Problem) -> int:
    """How many completions are right: correct or equivalent."""
    return sum(is_accurate(grade.verdict) for grade in problem)


def accuracy(problem: Problem) -> float:
    """Share of completions that are right: correct or equivalent."""
    return right(problem) / len(problem)


def pass_at(k: int, problem: Problem) -> float:
    """The chance that k of the n completions, drawn without replacement, hold a right one: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of pass@k (Chen et al. 2021, arXiv 2107.03374, Eq. 1), in exact integers.
    """
    n = len(problem)
    return 1 - math.comb(n - right(problem), k) / math.comb(n, k)


def rate(verdict: str, problem: Problem) -> float:
    """Share of completions with a verdict."""
    return [grade.verdict for grade in problem].count(verdict) / len(problem)


def majority(problem: Problem) -> float:
    """Whether the most frequent answer is right; in a tie, the share of the tied answers that is.

    Right answers count as one and the same, others by their text; a completion without an answer does not vote.
    """
    votes = Counter(
        "right" if is_accurate(grade.verdict) else ("wrong", grade.extracted)
        for grade in problem
        if is_accurate(grade.verdict) or grade.extracted
    )
    most = max(votes.values(), default=0)
    first = [answer for answer, count in votes.items() if count == most]
    return (most > 0) and ("right" in first) / len(first)


def _paper(drawn: dict[Decoding, Problems]) -> Iterator[Definition]:
    """`greedy`, `avg@n`, `pass@k`, `maj@n`, the same accuracies `exact-`, and rates of verdicts.

    k is 2, 4, 8, ... and n itself; a vote needs n of 3 or more. `exact-` counts correct, not equivalent, answers.
    """
    for name, problems in _named(drawn):
        yield name, accuracy, problems
        yield f"exact-{name}", partial(rate, "correct"), problems
    n = samples(drawn.get("sampled", {}))
    for k in sorted({2**power for power in range(1, n.bit_length())} | ({n} if n > 1 else set())):
        yield f"pass@{k}", partial(pass_at, k), drawn["sampled"]
    if n >= 3:
        yield f"maj@{n}", majority, drawn["sampled"]
    every = {id: [g for problems in drawn.values() for g in problems[id]] for id in next(iter(drawn.values()))}
    for verdict in RATES:
        yield f"rate-{verdict}", partial(rate, verdict), every


def _released(drawn: dict[Decoding, Problems]) -> Iterator[Definition]:
    """What the authors' release reports: greedy accuracy, and for sampled completions whether any is right.

    The looser reading of GSM8K answers that it evaluates with is `mcgrpo.grade --protocol released`.
    """
    for decoding, problems in drawn.items():
        n = samples(problems)
        name = "greedy" if decoding == "greedy" else f"any@{n}"
        yield f"released-{name}", partial(pass_at, n), problems


def _robust(drawn: dict[Decoding, Problems]) -> Iterator[Definition]:
    for name, problems in _named(drawn):
        yield f"robust-{name}", accuracy, problems


MEASURES = {"paper": _paper, "released": _released, "robust": _robust}
"""The measures of each protocol of evaluation."""


def measures(grades: Iterable[Grade], where: str, protocol: str = "paper") -> list[Measure]:
    """All measures of one benchmark under a protocol of `MEASURES`; errors, which name `where`, as in `by_decoding`."""
    drawn = by_decoding(grades, where)
    problems = problems_hash(next(iter(drawn.values())))
    return [
        Measure(name, [float(value(problem)) for problem in each.values()], problems)
        for name, value, each in MEASURES[protocol](drawn)
    ]


def _named(drawn: dict[Decoding, Problems]) -> Iterator[tuple[str, Problems]]:
    """The name of the accuracy of each decoding."""
    for decoding, problems in drawn.items():
        yield "greedy" if decoding == "greedy" else f"avg@{samples(problems)}", problems


def samples(problems: Problems) -> int:
    """How many completions each problem has; 0 without problems."""
    return len(next(iter(problems.values()), ()))


def by_decoding(grades: Iterable[Grade], where: str) -> dict[Decoding, Problems]:
    """The problems under `greedy` and `sampled`, each of the same ids, all with the same number of completions.

    Raises:
        RecordError: naming `where`, if there are no grades, problems have different numbers of samples, one sample is
            graded twice, or the two hold different problems.
    """
    grouped: dict[Decoding, dict[str, list[Grade]]] = defaultdict(lambda: defaultdict(list))
    for grade in grades:
        grouped[grade.decoding][grade.id].append(grade)
    if not grouped:
        raise RecordError(f"{where}: no grades")
    for decoding, problems in grouped.items():
        counts = {len(problem) for problem in problems.values()}
        if len(counts) > 1:
            raise RecordError(f"{where}: problems have {min(counts)} to {max(counts)} {decoding} samples each")
        for name, problem in problems.items():
            if len({grade.sample for grade in problem}) < len(problem):
                raise RecordError(f"{where}: a {decoding} sample of {name!r} stands twice")
    if len({tuple(problems) for problems in grouped.values()}) > 1:
        raise RecordError(f"{where}: greedy and sampled completions are of different problems")
    return {decoding: dict(problems) for decoding, problems in grouped.items()}


def problems_hash(ids: Iterable[str]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of problems' ids, in their order."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]


def read_grades(path: Path) -> Iterator[Grade]:
    """The grades of a file; columns that `grade` carries through from its input are left out.

    Raises:
        RecordError: for a file that has changed since it was written, or a row that is no grade.
    """
    check_seal(path)
    names = Grade.__dataclass_fields__
    for where, row in iter_json_lines(path):
        yield as_record(Grade, {name: row[name] for name in names if name in row}, where)
