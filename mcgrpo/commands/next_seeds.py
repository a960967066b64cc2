"""One seed more where a gain is undecided: `mcgrpo next-seeds STUDY.yaml ... --output next.yaml`.

    while mcgrpo next-seeds config/mini.yaml --output next.yaml; do
      snakemake --cores all --configfile config/mini.yaml next.yaml
    done

A gain is decided when its interval (`mcgrpo.analyse.anytime`, which stays valid however often one looks) excludes 0 or
lies within the study's margin. Until all gains of an experiment are, the overlay file gives it its next seed, merged
over the seeds that the file already adds. Exit code 3: there is nothing to add. Snakemake sees a study file, and its
rules and the runs that are there stay as they are. Intervals of the report are for a number of seeds that was fixed
before: after looking, those printed here count. They are over seeds, on the benchmark's problems as they are, and not
corrected for the number of gains.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from tabulate import tabulate

from mcgrpo import command_line
from mcgrpo.analyse.anytime import limits
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Gain
from mcgrpo.files import RecordError, write_text
from mcgrpo.records import CELL, cell_name
from mcgrpo.study import read as study_file
from mcgrpo.study import strict_yaml
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import METHODS, UNTRAINED
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.plan import EQUIVALENCE_MARGIN, Config, evaluations, expand

DONE = 3
"""The exit code where no seed is to be added."""


class Looked(NamedTuple):
    """One gain of an experiment after the seeds so far; `word` is better, worse, equivalent or undecided."""

    experiment: str
    cell: str
    benchmark: str
    seeds: int
    gain: float
    low: float
    high: float
    word: str


def look(config: Config, gains: pd.DataFrame, measure: str, names: list[str]) -> Iterator[Looked]:
    """The gains of the experiments, after all their seeds.

    Raises:
        StudyError: for a planned seed without a gain: seeds are judged in order, none may be left out. For a measure
            that has no gains.
    """
    differences = gains[gains.kind == "difference"]
    rows = differences[differences.measure == measure]
    if rows.empty and len(differences):
        raise StudyError(f"no gains in {measure}; there are those in {', '.join(sorted(set(differences.measure)))}")
    by_cell = {key: group.set_index("seed").gain for key, group in rows.groupby([*CELL, "benchmark"])}
    for name in names:
        part = {**config, "experiments": {name: config["experiments"][name]}}
        planned, evaluated, seeds = expand(part), evaluations(part), seeds_of(config, name)
        for run in (entry.run for entry in planned.values()):
            baseline = METHODS[run.method].baseline if run.method != UNTRAINED else None
            if run.seed == seeds[0] and baseline and replace(run, method=baseline).name in planned:
                for benchmark in evaluated[run.name]:
                    cell = (*(getattr(run, field) for field in CELL), benchmark)
                    seen = by_cell.get(cell, pd.Series(dtype=float))
                    yield _looked(name, cell_name(vars(run)), benchmark, seen, seeds, config)


def _looked(name: str, cell: str, benchmark: str, gains: pd.Series, seeds: list[int], config: Config) -> Looked:
    if missing := [seed for seed in seeds if seed not in gains.index]:
        raise StudyError(f"{cell} on {benchmark}: seed {missing[0]} has no gain yet; finish the study first")
    values = gains.loc[seeds]
    low, high = limits(values.to_list())
    margin = config.get("equivalence_margin", EQUIVALENCE_MARGIN)
    word = "better" if low > 0 else "worse" if high < 0 else "undecided"
    word = "equivalent" if word == "undecided" and -margin < low and high < margin else word
    return Looked(name, cell, benchmark, len(seeds), values.mean(), low, high, word)


def seeds_of(config: Config, experiment: str) -> list[int]:
    """The seeds of an experiment, in their order."""
    return config["experiments"][experiment].get("seeds", config["seeds"])


def extended(config: Config, looked: list[Looked], most: int) -> dict[str, list[int]]:
    """Experiments that go on -> their seeds with one more; none has more than `most`."""
    going = dict.fromkeys(each.experiment for each in looked if each.word == "undecided" and each.seeds < most)
    return {name: [*(seeds := seeds_of(config, name)), max(seeds) + 1] for name in going}


def main() -> None:
    """Add a seed where a gain is not decided yet, with intervals that stay valid under looking."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the overlay, read if it is there")
    parser.add_argument("--experiments", nargs="+", default=[], metavar="NAME", help="default: all with a baseline")
    parser.add_argument("--most", type=int, default=20, help="seeds of a cell, at most (default: %(default)s)")
    parser.add_argument("--measure", default="greedy", help="of accuracy (default: %(default)s)")
    options = parser.parse_args()
    output = options.output.absolute()
    with command_line.errors(StudyError, RecordError, OSError):
        added = _step(options, output)
    sys.exit(0 if added else DONE)


def _step(options: argparse.Namespace, output: Path) -> bool:
    files = [*study_file.resolve(options), *([output] if output.exists() else [])]
    config = study_file.read(files)
    if unknown := sorted(set(options.experiments) - config["experiments"].keys()):
        raise StudyError(f"--experiments {unknown[0]}: the study has no such experiment")
    gains = read_frame(study_file.made(config, StudyFiles(config["study"]).results.gains), Gain)
    looked = list(look(config, gains, options.measure, options.experiments or list(config["experiments"])))
    if not looked:
        raise StudyError("no experiment trains a method beside its baseline")
    headers = ["experiment", "cell", "on", "seeds", "gain", "low", "high", ""]
    rows = [(*row[:4], *(f"{100 * value:+.1f}" for value in row[4:7]), row.word) for row in looked]
    print(tabulate(rows, headers, "simple", disable_numparse=True))
    added = extended(config, looked, options.most)
    if added:
        _write(output, strict_yaml.load(output) if output.exists() else {}, added)
    print(f"\n{', '.join(f'{name}: seed {seeds[-1]}' for name, seeds in added.items()) or 'No seed is to be added.'}")
    return bool(added)


def _write(output: Path, overlay: dict[str, Any], added: dict[str, list[int]]) -> None:
    given = overlay.get("experiments", {})
    experiments = given | {name: given.get(name, {}) | {"seeds": seeds} for name, seeds in added.items()}
    text = yaml.safe_dump(overlay | {"experiments": experiments}, sort_keys=False, default_flow_style=None)
    write_text(output, text)


if __name__ == "__main__":
    main()
