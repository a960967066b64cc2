"""What a benchmark's verdicts amount to: accuracy, pass@k, majority votes. Pure functions, standard library only.

Every measure is a mean over problems, and keeps the value of each problem. Fractions are in [0, 1].
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from mcgrpo.files import RecordError, as_record, iter_json_lines
from mcgrpo.grade.rewards import is_accurate
from mcgrpo.records import Grade

Problem = Sequence[Grade]
"""The grades of one problem's completions, drawn in one way."""
Problems = dict[str, Problem]
"""By id, in the order of the benchmark."""


class Measure(NamedTuple):
    """A named value for each problem, in the order of their ids (`problems`, hashed)."""

    name: str
    values: list[float]
    problems: str

    @property
    def value(self) -> float:
        """The mean over problems."""
        return fmean(self.values)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean: the standard deviation over problems (Bessel's correction) over the root of n."""
        return stdev(self.values) / math.sqrt(len(self.values)) if len(self.values) > 1 else None


def right(problem: Problem) -> int:
    """How many completions are right: correct or equivalent."""
    return sum(is_accurate(grade.verdict) for grade in problem)


def accuracy(problem: Problem) -> float:
    """Share of completions that are right: correct or equivalent."""
    return right(problem) / len(problem)


def exact(problem: Problem) -> float:
    """Share of completions that are right to the letter."""
    return rate("correct", problem)


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


def measures(grades: Iterable[Grade], where: str) -> list[Measure]:
    """All measures of one benchmark: `greedy`, `avg@n`, `pass@k`, `maj@n`, exact matches, and rates of verdicts.

    k is 2, 4, 8, ... and n itself; a vote needs n of 3 or more. `exact-` counts correct, not equivalent, answers.

    Raises:
        RecordError: naming `where`, if there are no grades or problems have different numbers of samples.
    """
    grades = list(grades)
    drawn = by_decoding(grades, where)
    listed = []
    if "greedy" in drawn:
        listed += [mean("greedy", accuracy, drawn["greedy"]), mean("exact-greedy", exact, drawn["greedy"])]
    if "sampled" in drawn:
        listed += sampled(drawn["sampled"])
    every = {id: [g for problems in drawn.values() for g in problems[id]] for id in next(iter(drawn.values()))}
    return listed + [mean(f"rate-{name}", partial(rate, name), every) for name in ("unparseable", "timeout", "error")]


def released(grades: Iterable[Grade], where: str) -> list[Measure]:
    """What the authors' release reports: greedy accuracy, and for sampled completions whether any is right.

    The looser reading of GSM8K answers that it evaluates with is `mcgrpo.grade --protocol released`.

    Raises:
        RecordError: as `measures`.
    """
    drawn = by_decoding(grades, where)
    listed = [mean("released-greedy", accuracy, drawn["greedy"])] if "greedy" in drawn else []
    if "sampled" in drawn:
        n = samples(drawn["sampled"])
        listed.append(mean(f"released-any@{n}", partial(pass_at, n), drawn["sampled"]))
    return listed


def robust(grades: Iterable[Grade], where: str) -> list[Measure]:
    """Accuracies under the protocol `robust`: `robust-greedy` and `robust-avg@n`.

    Raises:
        RecordError: as `measures`.
    """
    drawn = by_decoding(grades, where)
    names = {name: name if name == "greedy" else f"avg@{samples(problems)}" for name, problems in drawn.items()}
    return [mean(f"robust-{names[decoding]}", accuracy, problems) for decoding, problems in drawn.items()]


def samples(problems: Problems) -> int:
    """How many completions each problem has."""
    return len(next(iter(problems.values())))


def sampled(problems: Problems) -> Iterator[Measure]:
    """The measures of n samples a problem."""
    n = samples(problems)
    yield mean(f"avg@{n}", accuracy, problems)
    yield mean(f"exact-avg@{n}", exact, problems)
    for k in sorted({2**power for power in range(1, n.bit_length()) if 2**power <= n} | ({n} if n > 1 else set())):
        yield mean(f"pass@{k}", partial(pass_at, k), problems)
    if n >= 3:
        yield mean(f"maj@{n}", majority, problems)


def mean(name: str, of: Callable[[Problem], float], problems: Problems) -> Measure:
    """A measure from a value per problem; its value is their mean."""
    return Measure(name, [float(of(problem)) for problem in problems.values()], problems_hash(problems))


def by_decoding(grades: Iterable[Grade], where: str) -> dict[str, Problems]:
    """The problems under `greedy` and `sampled`, each of the same ids, all with the same number of completions.

    Raises:
        RecordError: naming `where`, if there are no grades, problems have different numbers of samples, one sample is
            graded twice, or the two hold different problems.
    """
    grouped: dict[str, dict[str, list[Grade]]] = defaultdict(lambda: defaultdict(list))
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
    """The grades of a file; columns that `grade` carries through from its input are left out."""
    names = Grade.__dataclass_fields__
    for where, row in iter_json_lines(path):
        yield as_record(Grade, {name: row[name] for name in names if name in row}, where)
