"""What a benchmark's verdicts amount to: accuracy, pass@k, majority votes. Pure functions, standard library only.

Every measure is a mean over problems, with their number and its standard error over problems: the standard deviation
of the per-problem values (Bessel's correction) over the square root of their number. Fractions are in [0, 1].
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from mcgrpo.files import RecordError
from mcgrpo.records import Grade
from mcgrpo.rewards import is_accurate

Problem = Sequence[Grade]
"""The grades of one problem's completions, drawn in one way."""


class Measure(NamedTuple):
    """`n` problems (completions, for a rate of verdicts); no standard error where it has no meaning."""

    name: str
    value: float
    n: int
    standard_error: float | None = None


def accuracy(problem: Problem) -> float:
    """Share of completions that are right: correct or equivalent."""
    return fmean(is_accurate(grade.verdict) for grade in problem)


def exact(problem: Problem) -> float:
    """Share of completions that are right to the letter."""
    return fmean(grade.verdict == "correct" for grade in problem)


def pass_at(k: int, problem: Problem) -> float:
    """The chance that k of the n completions, drawn without replacement, hold a right one: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of pass@k (Chen et al. 2021, arXiv 2107.03374, Eq. 1), in exact integers.
    """
    n, right = len(problem), sum(is_accurate(grade.verdict) for grade in problem)
    return 1 - math.comb(n - right, k) / math.comb(n, k)


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
    found = []
    if "greedy" in drawn:
        found += [mean("greedy", accuracy, drawn["greedy"]), mean("exact-greedy", exact, drawn["greedy"])]
    if "sampled" in drawn:
        found += sampled(drawn["sampled"])
    rates = ("unparseable", "timeout", "error")
    verdicts = Counter(grade.verdict for grade in grades)
    return found + [Measure(f"rate-{name}", verdicts[name] / len(grades), len(grades)) for name in rates]


def released(grades: Iterable[Grade], where: str) -> list[Measure]:
    """What the authors' release reports: greedy accuracy, and for sampled completions whether any is right.

    The looser reading of GSM8K answers that it evaluates with is `mcgrpo.grade --protocol released`.

    Raises:
        RecordError: as `measures`.
    """
    drawn = by_decoding(grades, where)
    found = [mean("released-greedy", accuracy, drawn["greedy"])] if "greedy" in drawn else []
    if "sampled" in drawn:
        n = len(drawn["sampled"][0])
        found.append(mean(f"released-any@{n}", lambda problem: pass_at(n, problem), drawn["sampled"]))
    return found


def sampled(problems: Sequence[Problem]) -> Iterator[Measure]:
    """The measures of n samples a problem."""
    n = len(problems[0])
    yield mean(f"avg@{n}", accuracy, problems)
    yield mean(f"exact-avg@{n}", exact, problems)
    for k in sorted({2**power for power in range(1, n.bit_length()) if 2**power <= n} | ({n} if n > 1 else set())):
        yield mean(f"pass@{k}", lambda problem, k=k: pass_at(k, problem), problems)
    if n >= 3:
        yield mean(f"maj@{n}", majority, problems)


def mean(name: str, of: Callable[[Problem], float], problems: Sequence[Problem]) -> Measure:
    """A per-problem value's mean, with its standard error; none for a single problem."""
    values = [float(of(problem)) for problem in problems]
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return Measure(name, fmean(values), len(values), error)


def by_decoding(grades: Iterable[Grade], where: str) -> dict[str, list[Problem]]:
    """The problems under `greedy` and `sampled`, each with the same number of completions.

    Raises:
        RecordError: naming `where`, if there are no grades, problems have different numbers of samples, or one
            sample is graded twice.
    """
    found: dict[str, dict[str, list[Grade]]] = defaultdict(lambda: defaultdict(list))
    for grade in grades:
        found[grade.decoding][grade.id].append(grade)
    if not found:
        raise RecordError(f"{where}: no grades")
    for decoding, problems in found.items():
        counts = {len(problem) for problem in problems.values()}
        if len(counts) > 1:
            raise RecordError(f"{where}: problems have {min(counts)} to {max(counts)} {decoding} samples each")
        for name, problem in problems.items():
            if len({grade.sample for grade in problem}) < len(problem):
                raise RecordError(f"{where}: a {decoding} sample of {name!r} stands twice")
    return {decoding: list(problems.values()) for decoding, problems in found.items()}
