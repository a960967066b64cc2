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

Signs are those of integers. So are weights: 64-bit ones while the largest sum fits (C(128, 9) does), and beyond that
Python's, which have no limit: slower, and as exact. Needs numpy; a composition takes L integers, and there are
C(k + L - 1, L - 1) of them (1287 at k = 8 and six levels).
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mcgrpo import command_line
from mcgrpo.analyse.flip_measures import BASELINES, CONVENTIONS, ORACLES, Baseline, Convention, Oracle, measure_name
from mcgrpo.analyse.flips_table import table
from mcgrpo.analyse.measures import by_decoding, problems_hash, read_grades
from mcgrpo.analyse.records import FlipRates
from mcgrpo.files import RecordError, write_jsonl
from mcgrpo.grade.rewards import reward_of

Levels = tuple[int, ...]


class Tally(NamedTuple):
    """A prompt's rewards: distinct levels, ascending, as integers from 0 without a common factor; how often each."""

    levels: Levels
    counts: tuple[int, ...]


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
    flips, unit = _flips_of_compositions(rewards.levels, size, baseline, signs, convention)
    subsets = math.comb(total, size)
    flipped = _weights(rewards.counts, size) @ _integers(flips, size * unit * subsets)
    return Fraction(int(flipped), k * unit * subsets)


def sampled_rate(
    rewards: Tally, baseline: Baseline, oracle: Oracle, convention: Convention, k: int, drawn: np.ndarray
) -> Fraction:
    """The sign-flip rate of one prompt, over the subsets that `draw` drew."""
    size = group_size(baseline, k)
    counts = (drawn[:, :size, None] == np.arange(len(rewards.levels))).sum(axis=1)
    flips, unit = _flips(counts, rewards.levels, baseline, _oracle_signs(rewards, oracle), convention)
    flipped = _integers(flips, size * unit * len(drawn)).sum()
    return Fraction(int(flipped), k * unit * len(drawn))


def draw(rewards: Tally, k: int, subsamples: int, generator: np.random.Generator) -> np.ndarray:
    """Random subsets of k + 1 rollouts; the first k of each are a random subset of k.

    Returns each rollout's level, counted from 0: integers of shape (subsamples, k + 1).
    """
    rollouts = np.repeat(np.arange(len(rewards.levels)), rewards.counts)
    return generator.permuted(np.tile(rollouts, (subsamples, 1)), axis=1)[:, : k + 1]


def group_size(baseline: Baseline, k: int) -> int:
    """The rollouts that a baseline is taken of, where k reach the update."""
    return k + baseline.endswith("-plus1")


def _integers(values: Iterable[int], largest: int) -> np.ndarray:
    """An array for sums of up to `largest`, in 64 bits where they fit, else of Python's integers."""
    return np.array(values, dtype=np.int64 if largest < 2**63 else object)


def _mean_distances(counts: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """n (level - mean of the group's n rewards); (subsets, L) counts and (L,) levels -> (subsets, L)."""
    return levels * counts.sum(axis=1, keepdims=True) - (counts @ levels)[:, None]


def _median_distances(counts: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """2 (level - median), the mean of the two middle ones in an even group; shapes as in `_mean_distances`."""
    size, up_to = counts.sum(axis=1, keepdims=True), counts.cumsum(axis=1)
    lower = levels[(up_to <= (size - 1) // 2).sum(axis=1)]
    upper = levels[(up_to <= size // 2).sum(axis=1)]
    return 2 * levels - (lower + upper)[:, None]


def _distances(counts: np.ndarray, levels: Levels, centre: str) -> np.ndarray:
    """Each level's distance from the groups' mean or median, in integers of one positive unit per group."""
    largest = 2 * int(counts.sum(axis=1).max()) * levels[-1]
    of = _median_distances if centre == "median" else _mean_distances
    return of(counts, _integers(levels, largest))


@cache
def _oracle_signs(rewards: Tally, oracle: Oracle) -> tuple[int, ...]:
    """The sign of each level under the baseline of all rollouts."""
    distances = _distances(np.array([rewards.counts]), rewards.levels, oracle.removeprefix("oracle-"))
    return tuple(int(sign) for sign in np.sign(distances[0]))


def _flips(
    counts: np.ndarray, levels: Levels, baseline: Baseline, oracle_signs: tuple[int, ...], convention: Convention
) -> tuple[np.ndarray, int]:
    """How many of a subset's kept rollouts flip: integers of shape (subsets,), and the unit that they are counted in.

    The unit is 1 unless a rollout is dropped: if several are equally close, a fraction of each is dropped.
    """
    distances = _distances(counts, levels, baseline.removesuffix("-plus1"))
    signs = np.sign(distances).astype(np.int64)
    oracle = np.array(oracle_signs)
    disagrees = signs * oracle < 0 if convention == "strict" else signs != oracle
    flipped = (counts * disagrees).sum(axis=1)
    if not baseline.endswith("-plus1"):
        return flipped, 1
    size = int(counts[0].sum())
    unit = math.lcm(*range(1, size + 1))
    off = np.where(counts > 0, abs(distances), abs(distances).max() + 1)
    closest = counts * (off == off.min(axis=1, keepdims=True))
    share = unit // _integers(closest.sum(axis=1), size * unit)
    return _integers(flipped, size * unit) * unit - (closest * disagrees).sum(axis=1) * share, unit


@cache
def compositions(levels: int, size: int) -> np.ndarray:
    """Every way to spread `size` rollouts over some levels, (C(size + levels - 1, levels - 1), levels)."""
    bars = np.array(list(itertools.combinations(range(size + levels - 1), levels - 1)), dtype=np.int64)
    return np.diff(bars, prepend=-1, append=size + levels - 1, axis=1) - 1


@cache
def _flips_of_compositions(
    levels: Levels, size: int, baseline: Baseline, oracle_signs: tuple[int, ...], convention: Convention
) -> tuple[np.ndarray, int]:
    return _flips(compositions(len(levels), size), levels, baseline, oracle_signs, convention)


@cache
def _weights(counts: tuple[int, ...], size: int) -> np.ndarray:
    """The number of subsets that each composition describes, prod C(n_v, c_v)."""
    total = sum(counts)
    weights, largest = np.array([1]), math.comb(total, min(size, total // 2))
    for count, chosen in zip(counts, compositions(len(counts), size).T, strict=True):
        weights = weights * _integers([math.comb(count, c) for c in range(size + 1)], largest)[chosen]
    return weights


def flip_rates(
    rewards: Mapping[str, Sequence[float]], sizes: Sequence[int], subsamples: int, seed: int
) -> Iterator[FlipRates]:
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
            yield FlipRates(measure_name(*part, k, "exact"), exact, problems)
            pairs = zip(tallies.values(), subsets, strict=True)
            sampled = [float(sampled_rate(counted, *part, k, drawn)) for counted, drawn in pairs]
            yield FlipRates(measure_name(*part, k, "sampled"), sampled, problems)


def read_rewards(path: Path) -> dict[str, list[float]]:
    """The accuracy rewards of a file of grades: of each problem, by id in the file's order, its sampled completions.

    Raises:
        RecordError: for a line that is no grade, no sampled completions, or problems with different numbers of them.
    """
    problems = by_decoding(read_grades(path), str(path)).get("sampled")
    if not problems:
        raise RecordError(f"{path}: no sampled completions")
    return {name: [reward_of(grade) for grade in problem] for name, problem in problems.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Sign-flip rates of every prompt of a file of grades, under every convention."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--grades", type=Path, required=True, help="many sampled completions a problem")
    parser.add_argument(
        "--k",
        type=command_line.whole,
        nargs="+",
        default=[2, 4, 8],
        help="rollouts that reach the update (default: 2 4 8)",
    )
    parser.add_argument(
        "--subsamples", type=command_line.whole, default=20, help="random subsets per problem (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=partial(command_line.whole, least=0), default=0, help="of the random subsets (%(default)s)"
    )
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    with command_line.errors(RecordError):
        rewards = read_rewards(options.grades)
    try:
        rates = list(flip_rates(rewards, options.k, options.subsamples, options.seed))
    except RecordError as error:
        raise SystemExit(f"error: {options.grades}: {error}") from None
    write_jsonl(options.output, rates)
    print(f"{len(rates)} measures of {len(rewards)} problems; exact rates in percent, their mean over problems:")
    print(table(rates, options.k))


if __name__ == "__main__":
    main()
