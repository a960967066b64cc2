"""scores.csv and values.jsonl to summary.csv: every planned cell over its seeds, and paired with the cells beside it.

python -m mcgrpo.summarise --plan plan.json --scores scores.csv --values values.jsonl [--published published.csv]
    --output summary.csv

Measures with a value per problem have intervals over seeds and problems (`mcgrpo.bootstrap`), others t intervals over
seeds (`mcgrpo.stats`).
"""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcgrpo.bootstrap import Sample, interval, sample
from mcgrpo.files import read_json, write_csv
from mcgrpo.frames import read_frame
from mcgrpo.published import as_cells, read_published
from mcgrpo.records import Cell, Over, ProblemValues, Role, Score
from mcgrpo.scored import Key, Scores, found_scores, key_of, planned_seeds, read_values
from mcgrpo.stats import Estimate, mean_interval, paired_difference

NOTHING = Estimate(None, None, None, 0)


@dataclass(frozen=True)
class Block:
    """The cells that are compared with each other: of one measure on one benchmark in one setting.

    `sample` has a row for each (key, seed) of `rows`; None where the measure has no problems.
    """

    scores: Scores
    rows: dict[tuple[Key, int], int]
    sample: Sample | None

    def mean(self, key: Key) -> Estimate:
        """Of a cell over its seeds."""
        seeds = self._by_seed(key)
        if not seeds:
            return NOTHING
        return mean_interval(list(seeds.values())) if self.sample is None else interval(self._take(key, seeds))

    def difference(self, key: Key, other: Key | None) -> Estimate:
        """Of two cells over the seeds that both have."""
        ours, theirs = self._by_seed(key), self._by_seed(other)
        if self.sample is None:
            return paired_difference(ours, theirs)
        shared = sorted(ours.keys() & theirs.keys())
        return interval(self._take(key, shared) - self._take(other, shared)) if shared else NOTHING

    def over(self, key: Key) -> Over | None:
        """What `mean` has its interval over."""
        seeds = self.scores.get(key, {})
        if self.sample is None or self.sample.values.shape[1] == 1:
            return "seeds" if len(seeds) > 1 else None
        return {0: None, 1: "problems"}.get(len(seeds), "seeds and problems")

    def _by_seed(self, key: Key | None) -> dict[int, float]:
        return {seed: score.value for seed, score in self.scores.get(key, {}).items()}

    def _take(self, key: Key, seeds: Iterable[int]) -> Sample:
        return self.sample.take([self.rows[key, seed] for seed in seeds])


def as_block(scores: Scores) -> Block:
    """The scores of one block, with their problems resampled.

    Raises:
        ValueError: naming the rows, where only some have values, or two have them on different problems.
    """
    rows = [(key, seed, score) for key, seeds in scores.items() for seed, score in seeds.items()]
    having = [row for row in rows if row[2].values is not None]
    if not having:
        return Block(scores, {}, None)
    first = having[0]
    for key, seed, score in rows:
        if score.values is None:
            raise ValueError(f"{key}: seed {seed} has no values on problems, but seed {first[1]} of {first[0]} has")
        if (score.problems, score.n) != (first[2].problems, first[2].n):
            raise ValueError(f"{key}: seed {seed} is on other problems than seed {first[1]} of {first[0]}")
    places = {(key, seed): place for place, (key, seed, _) in enumerate(rows)}
    return Block(scores, places, sample(np.array([score.values for *_, score in rows])))


def planned_rows(planned: dict[Key, set[int]], scores: Scores, headline: list[str]) -> list[Key]:
    """Every row of the summary, in order: each planned cell and benchmark with the measures that any cell has there.

    Where no cell has any: the headline measures for an evaluation, the seconds for a training, none for sign flips.
    """
    measures: dict[tuple[str, str], set[str]] = defaultdict(set)
    for key in scores:
        measures[_kind(key.role), key.benchmark].add(key.measure)
    measures["train", "train"].add("seconds")
    rows = []
    for place in planned:
        kind = _kind(place.role)
        names = measures[kind, place.benchmark] or (headline if kind == "evaluation" else [])
        rows += [place._replace(measure=name) for name in names]
    return sorted(rows, key=lambda key: key.order)


def _kind(role: Role) -> str:
    """Benchmarks have the same measures in and out of distribution."""
    return "evaluation" if role in ("in", "out") else role


Printed = dict[Key, tuple[float, float | None]]
"""The paper's value and difference of a row; the setting is empty where it names none."""


def printed_numbers(published: pd.DataFrame) -> Printed:
    """Cells of `mcgrpo.published.as_cells`, by row."""
    return {
        key_of(row, row.measure): (row.mean, None if pd.isna(row.difference) else row.difference)
        for row in published.itertuples(index=False)
    }


def _printed(key: Key, printed: Printed) -> tuple[float | None, float | None]:
    """A number without a setting stands for every setting that the benchmark is out of distribution for."""
    unnamed = printed.get(key._replace(setting="")) if key.role == "out" else None
    return printed.get(key) or unnamed or (None, None)


def summarise(
    plan: dict[str, Any],
    scores: pd.DataFrame,
    values: Iterable[ProblemValues] = (),
    published: pd.DataFrame | None = None,
) -> list[Cell]:
    """One `Cell` for each planned cell, benchmark and measure, in a fixed order.

    Args:
        plan: of `mcgrpo.plan`: its `runs`, `benchmarks` (for the order of settings), `evaluations`, `flips` and
            (headline) `measures` are read.
        scores: one row per `Score`.
        values: what scores are the means of, in any order; measures without values have none in any cell.
        published: the paper's numbers, of `mcgrpo.published.as_cells`.

    Raises:
        ValueError: naming the row, see `found_scores` and `as_block`; for an unknown method.
    """
    planned = planned_seeds(plan)
    found = found_scores(scores, values, planned)
    settings = list(plan["benchmarks"])
    rows = planned_rows(planned, found, plan["measures"])
    rows.sort(key=lambda key: settings.index(key.setting))
    printed = {} if published is None else printed_numbers(published)
    blocks: dict[tuple, list[Key]] = defaultdict(list)
    for key in rows:
        blocks[key.block].append(key)
    cells: dict[Key, Cell] = {}
    for keys in blocks.values():
        block = as_block({key: found[key] for key in keys if key in found})
        cells |= {key: _cell(key, block, planned, _printed(key, printed)) for key in keys}
    return [cells[key] for key in rows]


def _cell(key: Key, block: Block, planned: Mapping[Key, Any], printed: tuple[float | None, float | None]) -> Cell:
    own = block.mean(key)
    baseline = key.baseline if key.baseline and key.baseline.place in planned else None
    return Cell(
        **key._asdict(),
        planned=len(planned[key.place]),
        seeds=own.n,
        n=next((score.n for score in block.scores.get(key, {}).values()), None),
        mean=own.mean,
        low=own.low,
        high=own.high,
        over=block.over(key),
        baseline=baseline and baseline.method,
        **_paired("difference", block.difference(key, baseline)),
        **_paired("change", block.difference(key, key.default)),
        published=printed[0],
        published_difference=printed[1],
    )


def _paired(name: str, found: Estimate) -> dict[str, float | int | None]:
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high, f"{name}_seeds": found.n or None}


def main(arguments: list[str] | None = None) -> None:
    """Read what was found, write the summary."""
    parser = argparse.ArgumentParser(description="Summarise scores over seeds and problems.")
    parser.add_argument("--plan", required=True, help="plan.json of the study")
    parser.add_argument("--scores", required=True, help="scores.csv, one Score a row")
    parser.add_argument("--values", required=True, help="values.jsonl, one ProblemValues a line")
    parser.add_argument("--published", help="the paper's numbers, one Published a row")
    parser.add_argument("--output", required=True, help="summary.csv, one Cell a row")
    options = parser.parse_args(arguments)
    try:
        published = as_cells(read_published(options.published)) if options.published else None
        scores, values = read_frame(options.scores, Score), read_values(options.values)
        cells = summarise(read_json(options.plan), scores, values, published)
        write_csv(options.output, Cell, cells)
    except ValueError as error:
        raise SystemExit(f"summarise: {error}") from None


if __name__ == "__main__":
    main()
