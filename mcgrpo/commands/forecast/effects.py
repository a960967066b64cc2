"""The smallest true gain in accuracy that a study would show, before anything is trained.

A gain is the mean over seeds and problems of a paired difference, the sum of an effect of its seed, of its problem, and
a rest. From the variances of the three follow its standard error and degrees of freedom, as in
`mcgrpo.analyse.crossed`, and from those the difference that a two-sided test at 5% shows with power 80%
(`mcgrpo.analyse.stats.detectable`).
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tabulate import tabulate

from mcgrpo.analyse.crossed import total_variance
from mcgrpo.analyse.stats import detectable
from mcgrpo.commands.forecast.sizes import Sizes
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import Config, benchmarks, planned

TEST_PROBLEMS = {
    "openai/gsm8k": 1319,
    "HuggingFaceH4/MATH-500": 500,
    "HuggingFaceH4/aime_2024": 30,
    "math-ai/amc23": 40,
}
"""Of the paper's benchmarks, where neither the disk nor the hub says it."""


class Spread(NamedTuple):
    """What is assumed of gains, unless they have been measured.

    Args:
        seeds: standard deviation of a gain from seed to seed, were there endless problems.
        problems: standard deviation of a gain from problem to problem, were there endless seeds.
        disagreement: share of greedy answers that are right of one method and wrong of the other; the variance of what
            neither seed nor problem explains.
    """

    seeds: float = 0.015
    problems: float = 0.08
    disagreement: float = 0.12


class Effect(NamedTuple):
    """The detectable gain, a fraction, of the cells of a setting that are evaluated on a benchmark with so many seeds.

    `source` is `assumed`, or `measured` (the median of the cells of summary.csv with as many seeds).
    """

    setting: str
    benchmark: str
    seeds: int
    cells: int
    problems: int | None
    gain: float | None
    source: str


def smallest_gain(seeds: int, problems: int, spread: Spread) -> float | None:
    """The detectable gain; None for one seed, which says nothing of the spread between seeds, and without problems."""
    if seeds < 2 or problems < 1:
        return None
    rest = spread.disagreement / (seeds * problems)
    of_seeds = (spread.seeds**2 / seeds + rest, seeds - 1)
    of_problems = (spread.problems**2 / problems + rest, problems - 1) if problems > 1 else (0.0, 0)
    freedom = (seeds - 1) * (problems - 1)
    variance, freedom = total_variance([of_seeds], [of_problems], [(rest, freedom) if freedom else (0.0, 0)])
    return detectable(variance**0.5, freedom)


def effects(config: Config, sizes: Sizes, spread: Spread) -> list[Effect]:
    """One for each setting, benchmark and number of seeds that gains are planned with."""
    measured = _measured(StudyFiles(config["study"]).results.summary)
    found = []
    for (setting, benchmark, seeds), cells in sorted(_gains(config).items()):
        spec = config["datasets"][benchmark]
        problems = sizes.rows[benchmark].get("test") or TEST_PROBLEMS.get(spec.get("hub"))
        if known := measured.get((setting, benchmark, seeds)):
            gain, source = median(known), "measured"
        else:
            gain, source = (None if problems is None else smallest_gain(seeds, problems, spread)), "assumed"
        found.append(Effect(setting, benchmark, seeds, cells, problems, gain, source))
    return found


def _gains(config: Config) -> dict[tuple[str, str, int], int]:
    """(setting, benchmark, seeds) -> how many cells are compared with their baseline there."""
    seeds: dict[tuple, set[int]] = defaultdict(set)
    roles: dict[tuple, set[str]] = defaultdict(set)
    for entry in planned(config).values():
        run = entry.run
        cell = (run.setting, run.method, run.num_generations, run.variant)
        seeds[cell].add(run.seed)
        roles[cell] |= entry.roles
    found: dict[tuple[str, str, int], int] = defaultdict(int)
    for (setting, method, *rest), own in seeds.items():
        baseline = None if method == UNTRAINED else METHODS[method].baseline
        shared = own & seeds.get((setting, baseline, *rest), set())
        for name, role in benchmarks(config, setting).items() if shared else ():
            if role in roles[setting, method, *rest] & roles[setting, baseline, *rest]:
                found[setting, name, len(shared)] += 1
    return found


def _measured(summary: Path) -> Mapping[tuple[str, str, int], list[float]]:
    """(setting, benchmark, seeds) -> detectable gains of greedy accuracy; without pandas, see `times._printed`."""
    found: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    if summary.is_file():
        with summary.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["measure"] == "greedy" and row.get("difference_detectable") and row["difference_seeds"] != "1":
                    place = row["setting"], row["benchmark"], int(row["difference_seeds"])
                    found[place].append(float(row["difference_detectable"]))
    return found


def listing(found: Sequence[Effect], spread: Spread) -> Iterator[str]:
    """The effects as a table, and what they rest on."""
    rows = [
        [
            each.setting,
            each.benchmark,
            each.cells,
            each.seeds,
            each.problems or "unknown",
            _points(each.gain),
            each.source,
        ]
        for each in found
    ]
    if not rows:
        return
    headers = ["setting", "benchmark", "gains", "seeds", "problems", "detectable, points", "spread"]
    yield ""
    yield "The smallest true gain in greedy accuracy that would be shown (two-sided test at 5%, power 80%):"
    yield tabulate(rows, headers, "simple", disable_numparse=True, colalign=("left", "left", *["right"] * 4, "left"))
    if any(row[-1] == "assumed" for row in rows):
        yield (
            f"assumed: a gain differs by {100 * spread.seeds:g} points from seed to seed and by "
            f"{100 * spread.problems:g} from problem to problem, and two methods differ in "
            f"{100 * spread.disagreement:g}% of their answers (--seed-sd, --problem-sd, --disagreement)"
        )
    if any(each.seeds == 1 for each in found):
        yield "unknown of one seed, which says nothing of the spread between seeds: nothing can be shown with it"
    if any(row[-1] == "measured" for row in rows):
        yield "measured: the median of the finished cells with as many seeds"


def _points(gain: float | None) -> str:
    return "unknown" if gain is None else f"{100 * gain:.1f}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that `spread_of` reads."""
    known = Spread()
    for option, default, of in (
        ("--seed-sd", 100 * known.seeds, "standard deviation of a gain from seed to seed, in points"),
        ("--problem-sd", 100 * known.problems, "standard deviation of a gain from problem to problem, in points"),
        ("--disagreement", 100 * known.disagreement, "percent of answers in which two methods differ"),
    ):
        parser.add_argument(option, type=float, default=default, metavar="X", help=f"{of} (default: %(default)g)")


def spread_of(options: argparse.Namespace) -> Spread:
    """The spread that a command line assumes."""
    return Spread(*(getattr(options, name) / 100 for name in ("seed_sd", "problem_sd", "disagreement")))
