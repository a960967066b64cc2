"""Graded samples of a model: how often each prompt got each reward."""

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from mcgrpo.analyse.measures import read_grades
from mcgrpo.files import RecordError
from mcgrpo.grade.rewards import is_accurate, reward_of

LEAST_SAMPLES = 2
ROUNDED = 0.05
"""How far a pass rate times its samples may be from a whole number: rates are printed with few digits."""


@dataclass(frozen=True)
class Samples:
    """What is known of the reward probabilities of some prompts.

    Args:
        levels: rewards, ascending; the lowest is a failure.
        counts: (prompts, levels) float64, samples with each reward; or probabilities, if they are exact.
        exact: whether `counts` are probabilities.
        note: what was left out of the file, or "".
    """

    levels: tuple[float, ...]
    counts: Tensor
    exact: bool = False
    note: str = ""


def read_samples(path: Path, rewards: Sequence[float] | None, samples: int | None) -> Samples:
    """Read grades (`mcgrpo grade`), or a CSV file of pass rates (`.csv`).

    Args:
        path: of the file.
        rewards: of a failure and of a success. By default a CSV file has 0 and 1, and grades have the project's.
        samples: of each prompt in a CSV file without that column.

    Raises:
        RecordError: naming the file and the line or the prompt that cannot be used.
    """
    if path.suffix == ".csv":
        return _of_rates(path, tuple(rewards or (0.0, 1.0)), samples)
    if samples is not None:
        raise RecordError(f"{path}: --samples is for pass rates (.csv); grades are counted")
    return _of_grades(path, rewards)


def _of_grades(path: Path, rewards: Sequence[float] | None) -> Samples:
    by_prompt: dict[str, Counter[float]] = {}
    unknown = set()
    for grade in read_grades(path):
        if grade.decoding != "sampled":
            continue
        if not grade.gold_parsable:
            unknown.add(grade.id)
        reward = rewards[is_accurate(grade.verdict)] if rewards else reward_of(grade)
        by_prompt.setdefault(grade.id, Counter())[reward] += 1
    by_prompt = {name: counts for name, counts in by_prompt.items() if name not in unknown}
    if not by_prompt:
        raise RecordError(f"{path}: no sampled completions with an answer to compare with")
    for name, counts in by_prompt.items():
        if counts.total() < LEAST_SAMPLES:
            raise RecordError(f"{path}: prompt {name!r} has one sample; pass rates need {LEAST_SAMPLES} or more")
    note = f"{len(unknown)} prompt(s) whose answer does not parse left out" if unknown else ""
    return _counted(path, by_prompt, min(rewards) if rewards else 0.0, note)


def _counted(path: Path, by_prompt: Mapping[str, Counter[float]], failure: float, note: str) -> Samples:
    levels = sorted({failure}.union(*by_prompt.values()))
    if len(levels) < 2:
        raise RecordError(f"{path}: every sample failed, so no estimator has a signal")
    if not any(counts[failure] for counts in by_prompt.values()):
        raise RecordError(f"{path}: no sample failed, so there is nothing to learn")
    rows = [[float(counts[level]) for level in levels] for counts in by_prompt.values()]
    return Samples(tuple(levels), torch.tensor(rows, dtype=torch.float64), note=note)


def _of_rates(path: Path, levels: tuple[float, ...], samples: int | None) -> Samples:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # Excel writes a byte order mark
            reader = csv.DictReader(file)
            if "pass_rate" not in (reader.fieldnames or ()):
                raise RecordError(f"{path}: no column pass_rate (it has: {', '.join(reader.fieldnames or ())})")
            if samples is not None and "samples" in reader.fieldnames:
                raise RecordError(f"{path}: has a column samples, leave out --samples")
            rows = [(f"{path}:{reader.line_num}", row) for row in reader]
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path}: not a CSV file in UTF-8 ({error})") from None
    if not rows:
        raise RecordError(f"{path}: no prompts")
    rates = [_number(where, row, "pass_rate") for where, row in rows]
    for (where, _), rate in zip(rows, rates, strict=True):
        if not 0 <= rate <= 1:
            raise RecordError(f"{where}: pass_rate {rate:g} is not between 0 and 1")
    if not 0 < sum(rates) < len(rates):
        raise RecordError(f"{path}: all pass rates are {rates[0]:g}, so no estimator has a signal")
    if samples is None and "samples" not in rows[0][1]:
        exact = torch.tensor([[1 - rate, rate] for rate in rates], dtype=torch.float64)
        return Samples(levels, exact, exact=True, note="pass rates are taken as exact; give --samples otherwise")
    sizes = [float(samples) if samples else _number(where, row, "samples") for where, row in rows]
    pairs = [_successes(where, rate, size) for (where, _), rate, size in zip(rows, rates, sizes, strict=True)]
    return Samples(levels, torch.tensor(pairs, dtype=torch.float64))


def _successes(where: str, rate: float, size: float) -> tuple[float, float]:
    if not size.is_integer() or size < LEAST_SAMPLES:
        raise RecordError(f"{where}: samples {size:g} is not a whole number of at least {LEAST_SAMPLES}")
    right = round(rate * size)
    if abs(rate * size - right) > ROUNDED:
        raise RecordError(f"{where}: pass_rate {rate:g} of {size:g} samples is {rate * size:g} successes")
    return size - right, float(right)


def _number(where: str, row: Mapping[str, str | None], column: str) -> float:
    try:
        value = float(row[column] or "")
    except ValueError:
        raise RecordError(f"{where}: {column} {row[column]!r} is not a number") from None
    if not math.isfinite(value):
        raise RecordError(f"{where}: {column} {value} is not finite")
    return value
