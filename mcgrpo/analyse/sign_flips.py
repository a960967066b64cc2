"""Sign-flip rates (MC-GRPO, Fig. 2 and Section 2), exact: the mean over ALL k-subsets of a prompt's N rollouts.

`python -m mcgrpo.analyse.sign_flips --grades FILE --k 2 4 8 --output FILE`

A rollout's sign under a small group's baseline is compared with its oracle sign, from all N rollouts of its prompt;
the rate is the share of a group's k rollouts for which they disagree. Rewards take few levels, so a subset is known by
how many rollouts it holds of each level, c_1 + ... + c_L = k, and the mean over all C(N, k) subsets is a sum over these
compositions, each with its hypergeometric weight prod C(n_v, c_v) / C(N, k). The paper estimates it from 20 subsets.

The paper leaves open what follows; every combination is computed, and a measure is named by it (`FlipMeasure`).

baseline: of the group. `mean` and `median` of its k rollouts (two middle ones are averaged: at k = 2 the median is the
    mean); `median-plus1` and `mean-plus1` of k + 1 rollouts, of which the one closest to the baseline is dropped, as
    training does (MC-GRPO; the control with extra sampling): the rate is that of the k kept ones. Training drops the
    first drawn of equally close ones; here that is the expectation over them, each being first equally often. It
    matters only where one lies above the baseline and one below it: tied medians of an odd group are all one level.
oracle: the baseline of the N rollouts, `oracle-mean` or `oracle-median`.
convention: a flip is `strict` (one sign is +, the other -) or `zeros` (the signs differ, 0 being a sign of its own).

A strict flip needs a level between two others: every baseline here lies within the group, so no lowest reward is ever
above it and no highest below. With two levels (0 and 2: right and wrong) the strict rate is 0 for the mean and for the
median alike, under both oracles. Under `zeros` it is not: the mean of a group disagrees with `oracle-mean` only where
all its rewards are equal (chance (C(a, k) + C(b, k)) / C(N, k)), the median wherever one level has the majority.

Rewards are counted in integers and rates are fractions, so that no sign and no rate is rounded.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse.measures import problems_hash, read_grades
from mcgrpo.analyse.records import Measure
from mcgrpo.files import RecordError, write_jsonl
from mcgrpo.grade.rewards import reward_of
from mcgrpo.sums import seal

BASELINES = ("mean", "median", "mean-plus1", "median-plus1")
ORACLES = ("oracle-mean", "oracle-median")
CONVENTIONS = ("strict", "zeros")
FLIP_NAMES = "({})/({})/({})/k([1-9][0-9]*)".format(*map("|".join, (BASELINES, ORACLES, CONVENTIONS)))
"""What measures of sign flips are called: a pattern."""
Counts = tuple[int, ...]
"""How many rollouts there are of each level."""


class FlipMeasure(NamedTuple):
    """One reading of "sign-flip rate", in the order of its name's parts."""

    baseline: str
    oracle: str
    convention: str
    k: int

    def __str__(self) -> str:
        return f"{self.baseline}/{self.oracle}/{self.convention}/k{self.k}"


def parse_measure(name: str) -> FlipMeasure:
    """The measure of a name, such as `mean/oracle-mean/strict/k2`.

    Raises:
        ValueError: for another name.
    """
    if not (match := re.fullmatch(FLIP_NAMES, name)):
        raise ValueError(f"{name!r} is no measure of sign flips, like 'mean/oracle-mean/strict/k2'")
    baseline, oracle, convention, k = match.groups()
    return FlipMeasure(baseline, oracle, convention, int(k))


class Tally(NamedTuple):
    """A prompt's rewards: distinct levels, ascending, as integers in a common unit; how often each."""

    levels: tuple[int, ...]
    counts: Counts


def tally(rewards: Iterable[float]) -> Tally:
    """Count finite rewards by level; no sign of an advantage changes with their unit."""
    counts = sorted(Counter(map(Fraction, rewards)).items())
    unit = math.lcm(*(level.denominator for level, _ in counts))
    return Tally(tuple(int(level * unit) for level, _ in counts), tuple(count for _, count in counts))


@cache
def every_group(counts: Counts, size: int) -> dict[Counts, int]:
    """Every way to take `size` rollouts from these, by level, and the number of subsets that it describes."""
    groups = itertools.product(*(range(min(size, count) + 1) for count in counts))
    return {group: math.prod(map(math.comb, counts, group)) for group in groups if sum(group) == size}


def rate(rewards: Tally, measure: FlipMeasure) -> Fraction:
    """The sign-flip rate of one prompt, over all groups of its rollouts."""
    baseline, oracle, convention, k = measure
    signs = _signs(_distances(rewards, oracle.removeprefix("oracle-")))
    groups = every_group(rewards.counts, k + baseline.endswith("-plus1"))
    flips = (times * _flips(group, rewards.levels, baseline, signs, convention) for group, times in groups.items())
    return Fraction(sum(flips), sum(groups.values()))


@cache
def _flips(group: Counts, levels: tuple[int, ...], baseline: str, oracle: tuple[int, ...], convention: str) -> Fraction:
    """The share of a group's kept rollouts that flip; of equally close ones, each is dropped in part."""
    distances = _distances(Tally(levels, group), baseline.removesuffix("-plus1"))
    pairs = zip(_signs(distances), oracle, strict=True)
    flips = [ours * theirs < 0 if convention == "strict" else ours != theirs for ours, theirs in pairs]
    flipped = Fraction(sum(itertools.compress(group, flips)))
    if not baseline.endswith("-plus1"):
        return flipped / sum(group)
    least = min(map(abs, itertools.compress(distances, group)))
    closest = [count * (abs(distance) == least) for count, distance in zip(group, distances, strict=True)]
    return (flipped - Fraction(sum(itertools.compress(closest, flips)), sum(closest))) / (sum(group) - 1)


def _distances(group: Tally, centre: str) -> list[int]:
    """The distance of each level from a group's mean or median, in a positive unit; even groups have two medians."""
    size = sum(group.counts)
    ranked = [level for level, count in zip(*group, strict=True) for _ in range(count)]
    if centre == "mean":
        return [size * level - sum(ranked) for level in group.levels]
    return [2 * level - ranked[(size - 1) // 2] - ranked[size // 2] for level in group.levels]


def _signs(distances: Iterable[int]) -> tuple[int, ...]:
    return tuple((distance > 0) - (distance < 0) for distance in distances)


def flip_rates(rewards: Mapping[str, Sequence[float]], sizes: Sequence[int]) -> Iterator[Measure]:
    """Every measure of the rewards of each problem (by id), each with a value per problem in their order.

    Raises:
        RecordError: naming a problem with fewer rollouts than the largest k + 1.
    """
    most = max(sizes)
    for problem, drawn in rewards.items():
        if len(drawn) <= most:
            raise RecordError(f"problem {problem!r} has {len(drawn)} rollouts; k = {most} needs {most + 1}")
    problems, tallies = problems_hash(rewards), [tally(drawn) for drawn in rewards.values()]
    for parts in itertools.product(BASELINES, ORACLES, CONVENTIONS, sizes):
        measure = FlipMeasure(*parts)
        yield Measure(str(measure), [float(rate(each, measure)) for each in tallies], problems)


def read_rewards(path: Path) -> dict[str, list[float]]:
    """The accuracy rewards of a file of grades: of each problem, by id in the file's order, its sampled completions.

    Raises:
        RecordError: for a line that is no grade, no sampled completions, or problems with different numbers of them.
    """
    problems = read_grades(path).get("sampled")
    if not problems:
        raise RecordError(f"{path}: no sampled completions")
    return {name: [reward_of(grade) for grade in problem] for name, problem in problems.items()}


def table(rates: Iterable[Measure]) -> str:
    """The rates in percent, each a mean over problems: a column for each convention and k."""
    rows = [{**parse_measure(row.measure)._asdict(), "rate": 100 * fmean(row.values)} for row in rates]
    columns = pd.DataFrame(rows).pivot(index=["baseline", "oracle"], columns=["convention", "k"], values="rate")
    return columns.to_string(float_format="{:.2f}".format)


def main(arguments: Sequence[str] | None = None) -> None:
    """Sign-flip rates of every prompt of a file of grades, under every convention."""
    parser, whole = command_line.parser(main.__doc__), command_line.whole
    parser.add_argument("--grades", type=Path, required=True, help="many sampled completions a problem")
    parser.add_argument("--k", type=whole, nargs="+", default=[2, 4, 8], help="rollouts that reach the update")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    with command_line.errors(RecordError):
        rewards = read_rewards(options.grades)
        rates = list(flip_rates(rewards, options.k))
        write_jsonl(options.output, rates)
        seal(options.output)
    print(f"{len(rates)} measures of {len(rewards)} problems; rates in percent, their mean over problems:")
    print(table(rates))


if __name__ == "__main__":
    main()
