"""Sign-flip rates (MC-GRPO, Fig. 2 and Section 2), exact: the mean over ALL k-subsets of a prompt's N rollouts.

`python -m mcgrpo.analyse.sign_flips --grades FILE --k 2 4 8 --subsamples 20 --seed 0 --output FILE`

A rollout's sign under a small group's baseline is compared with its oracle sign, from all N rollouts of its prompt;
the rate is the share of a group's k rollouts for which they disagree. Rewards take few levels, so a subset is known by
how many rollouts it holds of each level, c_1 + ... + c_L = k, and the mean over all C(N, k) subsets is a sum over these
compositions, each with its hypergeometric weight prod C(n_v, c_v) / C(N, k).

The paper leaves open what follows; every combination is computed, under the name that `measure_name` spells.

baseline: of the group. `mean` and `median` of its k rollouts (two middle ones are averaged: at k = 2 the median is the
    mean); `median-plus1` and `mean-plus1` of k + 1 rollouts, of which the one closest to the baseline is dropped, as
    training does (MC-GRPO; the control with extra sampling): the rate is that of the k kept ones. Training drops the
    first drawn of equally close ones; here that is the expectation over them, each being first equally often. It
    matters only where one lies above the baseline and one below it: tied medians of an odd group are all one level.
oracle: the baseline of the N rollouts, `oracle-mean` or `oracle-median`.
convention: a flip is `strict` (one sign is +, the other -) or `zeros` (the signs differ, 0 being a sign of its own).
how: `exact`, or `sampled` as in the paper, from 20 random subsets of each prompt.

A strict flip needs a level between two others: every baseline here lies within the group, so no lowest reward is ever
above it and no highest below. With two levels (0 and 2: right and wrong) the strict rate is 0 for the mean and for the
median alike, under both oracles. Under `zeros` it is not: the mean of a group disagrees with `oracle-mean` only where
all its rewards are equal (chance (C(a, k) + C(b, k)) / C(N, k)), the median wherever one level has the majority.

Rewards are counted in integers and rates are fractions, so that no sign and no rate is rounded.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse.flip_measures import (
    BASELINES,
    CONVENTIONS,
    ORACLES,
    Baseline,
    Convention,
    Oracle,
    measure_name,
    parse_measure,
)
from mcgrpo.analyse.measures import problems_hash, read_grades
from mcgrpo.analyse.records import Measure
from mcgrpo.files import RecordError, write_jsonl
from mcgrpo.grade.rewards import reward_of
from mcgrpo.sums import seal

Counts = tuple[int, ...]
"""How many rollouts there are of each level."""


class Tally(NamedTuple):
    """A prompt's rewards: distinct levels, ascending, as integers from 0 without a common factor; how often each."""

    levels: tuple[int, ...]
    counts: Counts


def tally(rewards: Iterable[float]) -> Tally:
    """Count rewards by level; no sign of an advantage changes with their unit and zero.

    Raises:
        ValueError: for no rewards, or one that is not finite.
    """
    rewards = list(rewards)
    if bad := [reward for reward in rewards if not math.isfinite(reward)]:
        raise ValueError(f"rewards hold {bad[0]}, which has no sign under a baseline")
    if not rewards:
        raise ValueError("no rewards")
    counts = sorted(Counter(map(Fraction, rewards)).items())
    unit = math.lcm(*(level.denominator for level, _ in counts))
    heights = [int((level - counts[0][0]) * unit) for level, _ in counts]
    factor = math.gcd(*heights) or 1
    return Tally(tuple(height // factor for height in heights), tuple(count for _, count in counts))


def exact_rate(rewards: Tally, baseline: Baseline, oracle: Oracle, convention: Convention, k: int) -> Fraction:
    """The expected sign-flip rate of one prompt, over all subsets of its rollouts.

    Raises:
        ValueError: for fewer rollouts than the baseline's group has.
    """
    size, total = group_size(baseline, k), sum(rewards.counts)
    if total < size:
        raise ValueError(f"{total} rollouts: a {baseline} baseline at k = {k} needs {size}")
    signs = _oracle_signs(rewards, oracle)
    flips = sum(
        subsets * _flips(counts, rewards.levels, baseline, signs, convention)
        for counts, subsets in compositions(rewards.counts, size)
    )
    return Fraction(flips, _unit(size) * k * math.comb(total, size))


def sampled_rate(
    rewards: Tally, baseline: Baseline, oracle: Oracle, convention: Convention, k: int, drawn: np.ndarray
) -> Fraction:
    """The sign-flip rate of one prompt, over the subsets that `draw` drew."""
    size, signs = group_size(baseline, k), _oracle_signs(rewards, oracle)
    counts = (drawn[:, :size, None] == np.arange(len(rewards.levels))).sum(axis=1).tolist()
    flips = sum(_flips(tuple(each), rewards.levels, baseline, signs, convention) for each in counts)
    return Fraction(flips, _unit(size) * k * len(drawn))


def draw(rewards: Tally, k: int, subsamples: int, generator: np.random.Generator) -> np.ndarray:
    """Random subsets of k + 1 rollouts; the first k of each are a random subset of k.

    Returns each rollout's level, counted from 0: integers of shape (subsamples, k + 1).
    """
    rollouts = np.repeat(np.arange(len(rewards.levels)), rewards.counts)
    return generator.permuted(np.tile(rollouts, (subsamples, 1)), axis=1)[:, : k + 1]


def group_size(baseline: Baseline, k: int) -> int:
    """The rollouts that a baseline is taken of, where k reach the update."""
    return k + baseline.endswith("-plus1")


@cache
def compositions(counts: Counts, size: int) -> list[tuple[Counts, int]]:
    """Every way to take `size` rollouts from these, by level, and the number of subsets that it describes."""
    if len(counts) == 1:
        return [((size,), math.comb(counts[0], size))] if size <= counts[0] else []
    return [
        ((first, *others), math.comb(counts[0], first) * subsets)
        for first in range(min(size, counts[0]) + 1)
        for others, subsets in compositions(counts[1:], size - first)
    ]


def _distances(group: Tally, centre: str) -> list[int]:
    """The distance of each level from a group's mean or median, in a positive unit; even groups have two medians."""
    size = sum(group.counts)
    if centre == "mean":
        total = sum(count * level for level, count in zip(*group, strict=True))
        return [size * level - total for level in group.levels]
    ranked = [level for level, count in zip(*group, strict=True) for _ in range(count)]
    return [2 * level - ranked[(size - 1) // 2] - ranked[size // 2] for level in group.levels]


def _signs(distances: Iterable[int]) -> tuple[int, ...]:
    return tuple((distance > 0) - (distance < 0) for distance in distances)


@cache
def _oracle_signs(rewards: Tally, oracle: Oracle) -> tuple[int, ...]:
    """The sign of each level under the baseline of all rollouts."""
    return _signs(_distances(rewards, oracle.removeprefix("oracle-")))


@cache
def _flips(
    counts: Counts, levels: tuple[int, ...], baseline: Baseline, oracle: tuple[int, ...], convention: Convention
) -> int:
    """How many of a group's kept rollouts flip, in parts of one; of equally close ones, each is dropped in part."""
    distances = _distances(Tally(levels, counts), baseline.removesuffix("-plus1"))
    pairs = zip(_signs(distances), oracle, strict=True)
    flips = [ours * theirs < 0 if convention == "strict" else ours != theirs for ours, theirs in pairs]
    unit = _unit(sum(counts))
    flipped = unit * sum(itertools.compress(counts, flips))
    if not baseline.endswith("-plus1"):
        return flipped
    least = min(map(abs, itertools.compress(distances, counts)))
    closest = [count * (abs(distance) == least) for count, distance in zip(counts, distances, strict=True)]
    return flipped - unit // sum(closest) * sum(itertools.compress(closest, flips))


@cache
def _unit(size: int) -> int:
    """The parts of a rollout: they can be shared among any number of a group's rollouts."""
    return math.lcm(*range(1, size + 1))


def flip_rates(
    rewards: Mapping[str, Sequence[float]], sizes: Sequence[int], subsamples: int, seed: int
) -> Iterator[Measure]:
    """Every measure of the rewards of each problem (by id), each with a value per problem in their order.

    The random subsets of a problem depend on `seed`, k and its id alone, and are the same for all conventions.

    Raises:
        RecordError: naming a problem with fewer rollouts than the largest k + 1.
    """
    needed = group_size("median-plus1", max(sizes))
    for problem, drawn in rewards.items():
        if len(drawn) < needed:
            raise RecordError(f"problem {problem!r} has {len(drawn)} rollouts; k = {max(sizes)} needs {needed}")
    problems = problems_hash(rewards)
    tallies = {problem: tally(drawn) for problem, drawn in rewards.items()}
    for k in sizes:
        subsets = [
            draw(counted, k, subsamples, np.random.default_rng([seed, k, *problem.encode()]))
            for problem, counted in tallies.items()
        ]
        for part in itertools.product(BASELINES, ORACLES, CONVENTIONS):
            exact = [float(exact_rate(counted, *part, k)) for counted in tallies.values()]
            yield Measure(measure_name(*part, k, "exact"), exact, problems)
            pairs = zip(tallies.values(), subsets, strict=True)
            sampled = [float(sampled_rate(counted, *part, k, drawn)) for counted, drawn in pairs]
            yield Measure(measure_name(*part, k, "sampled"), sampled, problems)


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
    """The exact rates in percent, each a mean over problems: a column for each convention and k."""
    rows = [{**parse_measure(row.measure)._asdict(), "rate": 100 * fmean(row.values)} for row in rates]
    exact = pd.DataFrame(rows).query("how == 'exact'")
    columns = exact.pivot(index=["baseline", "oracle"], columns=["convention", "k"], values="rate")
    return columns.to_string(float_format="{:.2f}".format)


def main(arguments: Sequence[str] | None = None) -> None:
    """Sign-flip rates of every prompt of a file of grades, under every convention."""
    parser, whole = command_line.parser(main.__doc__), command_line.whole
    parser.add_argument("--grades", type=Path, required=True, help="many sampled completions a problem")
    parser.add_argument("--k", type=whole, nargs="+", default=[2, 4, 8], help="rollouts that reach the update")
    parser.add_argument("--subsamples", type=whole, default=20, help="random subsets per problem (%(default)s)")
    parser.add_argument("--seed", type=partial(whole, least=0), default=0, help="of the random subsets (%(default)s)")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    with command_line.errors(RecordError):
        rewards = read_rewards(options.grades)
        rates = list(flip_rates(rewards, options.k, options.subsamples, options.seed))
    write_jsonl(options.output, rates)
    seal(options.output)
    print(f"{len(rates)} measures of {len(rewards)} problems; exact rates in percent, their mean over problems:")
    print(table(rates))


if __name__ == "__main__":
    main()
