"""What a benchmark's verdicts amount to: accuracy, pass@k, rates. Pure functions, standard library only.

Every measure is a mean over problems, and keeps the value of each problem. Fractions are in [0, 1].
"""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from mcgrpo.analyse.records import ASKED_TOKENS, FIT_TOKENS, Measure
from mcgrpo.files import RecordError, as_record, iter_json_lines
from mcgrpo.grade.rewards import ACCURATE, is_accurate
from mcgrpo.records import Decoding, Grade
from mcgrpo.sums import check_seal

Problem = Sequence[Grade]
"""The grades of one problem's completions, drawn in one way."""
Problems = dict[str, Problem]
"""By id, in the order of the benchmark."""
Column = dict[Decoding, dict[str, list[str]]]
"""One field of all grades: a value for each completion of each problem."""
Definition = tuple[str, Callable[[Sequence[str]], float], dict[str, list[str]]]
"""A measure: its name, its value for one problem, and the values of all problems, of one decoding or of both."""
RATES = ("unparseable", "timeout", "error")
"""Verdicts whose rate is a measure."""
ACCURACIES = r"(robust-)?(greedy|avg@\d+)|released-(greedy|any@\d+)|pass@\d+"
"""What the measures are called of which more is better: a pattern."""
MEASURE_NAMES = rf"{ACCURACIES}|rate-({'|'.join(RATES)}|cut-(greedy|sampled))"
"""What measures are called: a pattern."""


def rate(wanted: Container[str], values: Sequence[str]) -> float:
    """Share of completions with one of these values: of a verdict, or of how they ended."""
    return sum(value in wanted for value in values) / len(values)


def pass_at(k: int, verdicts: Sequence[str]) -> float:
    """The chance that k of the n completions, drawn without replacement, hold a right one: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of pass@k (Chen et al. 2021, arXiv 2107.03374, Eq. 1), in exact integers.
    """
    wrong = sum(not is_accurate(verdict) for verdict in verdicts)
    return 1 - math.comb(wrong, k) / math.comb(len(verdicts), k)


def column(drawn: dict[Decoding, Problems], name: str) -> Column:
    """One field of grades."""
    field = attrgetter(name)
    return {
        decoding: {id: [*map(field, problem)] for id, problem in problems.items()}
        for decoding, problems in drawn.items()
    }


def verdict_column(protocol: str) -> str:
    """The field of `Grade` that has the verdicts of a protocol in a study."""
    return "verdict" if protocol == "paper" else f"verdict_{protocol}"


def _accuracies(prefix: str, verdicts: Column) -> Iterator[Definition]:
    """`greedy` and `avg@n`: the share of completions that are accurate."""
    for decoding, problems in verdicts.items():
        name = "greedy" if decoding == "greedy" else f"avg@{samples(problems)}"
        yield prefix + name, partial(rate, ACCURATE), problems


def _paper(drawn: dict[Decoding, Problems]) -> Iterator[Definition]:
    """`greedy`, `avg@n`, `pass@k`, and rates of verdicts and of completions that were cut off.

    k is 2, 4, 8, ... and n itself. Grades that do not say how their completion ended have no rate of the last kind.
    """
    verdicts, ends = column(drawn, "verdict"), column(drawn, "finish_reason")
    yield from _accuracies("", verdicts)
    sampled = verdicts.get("sampled", {})
    n = samples(sampled)
    for k in sorted({2**power for power in range(1, n.bit_length())} | {n} - {0, 1}):
        yield f"pass@{k}", partial(pass_at, k), sampled
    every = {id: [v for problems in verdicts.values() for v in problems[id]] for id in next(iter(verdicts.values()))}
    for verdict in RATES:
        yield f"rate-{verdict}", partial(rate, [verdict]), every
    if all(all(problem) for problems in ends.values() for problem in problems.values()):
        for decoding, problems in ends.items():
            yield f"rate-cut-{decoding}", partial(rate, ("length",)), problems


def _released(drawn: dict[Decoding, Problems]) -> Iterator[Definition]:
    """What the authors' release reports: greedy accuracy, and for sampled completions whether any is right.

    The looser reading of GSM8K answers that it evaluates with is `mcgrpo.grade --protocol released`.
    """
    for decoding, problems in column(drawn, verdict_column("released")).items():
        n = samples(problems)
        name = "greedy" if decoding == "greedy" else f"any@{n}"
        yield f"released-{name}", partial(pass_at, n), problems


def _robust(drawn: dict[Decoding, Problems]) -> Iterator[Definition]:
    """`greedy` and `avg@n` by the reading that is robust."""
    yield from _accuracies("robust-", column(drawn, verdict_column("robust")))


def decoding_of(measure: str) -> Decoding | None:
    """Of what decoding a measure is the accuracy: `greedy` of greedy, `avg@n` of sampled; None of other measures."""
    return "greedy" if measure == "greedy" else "sampled" if measure.startswith("avg@") else None


MEASURES = {"paper": _paper, "released": _released, "robust": _robust}
"""The measures of each protocol of evaluation."""


def measures(drawn: dict[Decoding, Problems], protocol: str = "paper") -> list[Measure]:
    """All measures of one benchmark under a protocol of `MEASURES`, for which `read_grades` has read the verdicts."""
    ids = problems_hash(next(iter(drawn.values())))
    return [
        Measure(name, [float(value(problem)) for problem in problems.values()], ids)
        for name, value, problems in MEASURES[protocol](drawn)
    ]


def samples(problems: Mapping[str, Sequence[Any]]) -> int:
    """How many completions each problem has; 0 without problems."""
    return len(next(iter(problems.values()), ()))


def problems_hash(ids: Iterable[str]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of problems' ids, in their order."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]


def asked(drawn: dict[Decoding, Problems], where: str) -> dict[str, str]:
    """What completions were asked: a SHA-256 over the `golds` of all problems by id, and one over their `prompts`.

    Raises:
        RecordError: naming `where` and the problem, if it has two golds or two prompts.
    """
    kept: dict[str, tuple[Any, Any]] = {}
    for problems in drawn.values():
        for name, problem in problems.items():
            for grade in problem:
                here = grade.answer, grade.prompt_sha256
                if kept.setdefault(name, here) != here:
                    raise RecordError(f"{where}: completions of {name!r} have two golds or two prompts")
    parts = {"golds": 0, "prompts": 1}
    return {part: golds_sum((name, each[place]) for name, each in kept.items()) for part, place in parts.items()}


def golds_sum(golds: Iterable[tuple[str, Any]]) -> str:
    """The SHA-256 over ids with their golds (or prompts), in their order."""
    return hashlib.sha256(json.dumps([*golds]).encode()).hexdigest()


def read_grades(path: Path, grading: Iterable[str] = ("paper",)) -> dict[Decoding, Problems]:
    """The graded problems of a file; columns that `grade` carries through from its input are left out.

    Raises:
        RecordError: for a file that has changed since it was written, or a row that is no grade or lacks the verdict
            of a protocol of `grading`; and as `by_decoding`.
    """
    check_seal(path)
    return by_decoding(_rows(path, [verdict_column(protocol) for protocol in grading]), str(path))


def _rows(path: Path, verdicts: Sequence[str]) -> Iterator[Grade]:
    names = [name for name in Grade.__dataclass_fields__ if not name.startswith("verdict_") or name in verdicts]
    for where, row in iter_json_lines(path):
        grade = as_record(Grade, {name: row[name] for name in names if name in row}, where)
        for name in verdicts:
            if getattr(grade, name) is None:
                raise RecordError(
                    f"{where}: no {name!r}, it was not graded so: remove the file, and it is graded again"
                )
        yield grade


def token_limits(path: Path) -> dict[str, int]:
    """The most tokens of a file's completions, `FIT_TOKENS` and `ASKED_TOKENS`; empty for one that does not say."""
    _, row = next(iter_json_lines(path), ("", {}))
    return {name: row[name] for name in (FIT_TOKENS, ASKED_TOKENS) if row.get(name) is not None}


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
