"""scores.jsonl to summary.csv and gains.csv: every planned cell, and paired with the cells beside it.

python -m mcgrpo.analyse.summarise --plan plan.json --scores scores.jsonl [--published published.csv]
    --output summary.csv --gains gains.csv

Intervals of measures with a value per problem are over seeds and problems, those of others over seeds
(`mcgrpo.analyse.crossed`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse import paired, stability
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, Cell, Gain
from mcgrpo.analyse.scored import Planned, Scores, planned_seeds, read_scores, runs_of
from mcgrpo.analyse.stats import Estimate, gain_verdict
from mcgrpo.files import read_json, write_csv
from mcgrpo.records import Role
from mcgrpo.study.estimators import planned_extra


def planned_rows(planned: Planned, scores: Scores, headline: list[str]) -> list[CellKey]:
    """Every row of the summary, in order: each planned cell and benchmark with the measures that any cell has there.

    Where no cell has any: the headline measures for an evaluation, the seconds for a training, none for sign flips.
    """
    measures: dict[tuple[str, str], set[str]] = defaultdict(set)
    for key in scores:
        measures[_kind(key.role), key.benchmark].add(key.measure)
    measures["train", "train"].add("seconds")
    rows = []
    for key in planned:
        kind = _kind(key.role)
        names = measures[kind, key.benchmark] or (headline if kind == "evaluation" else [])
        rows += [key._replace(measure=name) for name in names]
    return sorted(rows, key=lambda key: key.order)


def _kind(role: Role) -> str:
    """Benchmarks have the same measures in and out of distribution."""
    return "evaluation" if role in ("in", "out") else role


@dataclass(frozen=True)
class Summary:
    """What summary.csv and gains.csv hold."""

    cells: list[Cell]
    gains: list[Gain]


def summarise(plan: dict[str, Any], scores: Scores, published: pd.DataFrame | None = None) -> Summary:
    """A `Cell` for each planned cell, benchmark and measure, and a `Gain` for each seed of its paired differences.

    Args:
        plan: of `mcgrpo.study.plan`: its `runs`, `benchmarks` (for the order of settings), `evaluations`, `flips`,
            `equivalence_margin` and (headline) `measures` are read.
        scores: of this plan, by `mcgrpo.analyse.scored.found_scores`.
        published: the paper's numbers, of `mcgrpo.analyse.published.as_cells`.

    Raises:
        ValueError: for an unknown method.
    """
    planned, settings = planned_seeds(plan), list(plan["benchmarks"])
    printed = {} if published is None else {CellKey.of(row): row for row in published.itertuples(index=False)}
    study = _Study(scores, planned, printed, extra_rollouts(plan, scores), plan["equivalence_margin"])
    rows = planned_rows(planned, scores, plan["measures"])
    rows.sort(key=lambda key: settings.index(key.setting))
    return Summary([study.cell(key) for key in rows], [gain for key in rows for gain in study.gains(key)])


def extra_rollouts(plan: dict[str, Any], scores: Scores) -> dict[CellKey, int | None]:
    """Rollouts drawn of each prompt beside G, by trainings; those of somebody's own estimator once one has finished."""
    extra = {}
    for run in runs_of(plan):
        key = CellKey(run.setting, run.variant, "train", "train", "", run.num_generations, run.method)
        counted = scores.get(key.of_training(EXTRA_ROLLOUTS))
        extra[key] = round(next(iter(counted.values())).value) if counted else planned_extra(run)
    return extra


@dataclass(frozen=True)
class _Study:
    scores: Scores
    planned: Planned
    printed: Mapping[CellKey, Any]
    extra: Mapping[CellKey, int | None]
    margin: float

    def cell(self, key: CellKey) -> Cell:
        """A row of the summary."""
        own, others, seeds = paired.mean(key, self.scores), self.others(key), self.scores.get(key, {})
        gains = {name: paired.difference(key, other, self.scores) for name, other in others.items()}
        margin = self.margin if _is_accuracy(key) else None
        (low, high), (printed, printed_gain) = own.limits(), self.printed_numbers(key)
        return Cell(
            **key._asdict(),
            planned=len(self.planned[key.without_measure]),
            seeds=own.seeds,
            n=next((score.n for score in seeds.values()), None),
            mean=own.mean,
            low=low,
            high=high,
            over=_over(key, self.scores),
            baseline=others["difference"] and others["difference"].method,
            **{column: value for name, gain in gains.items() for column, value in _columns(name, gain, margin)},
            published=printed,
            published_difference=printed_gain,
            difference_excludes_published=_excludes(gains["difference"], printed_gain),
            equivalence_margin=margin,
            same_rollouts_generations=others["same_rollouts"] and others["same_rollouts"].num_generations,
            worst=min((score.value for score in seeds.values()), default=None) if _is_accuracy(key) else None,
            collapsed=stability.collapsed(key, self.scores) if _is_accuracy(key) else None,
            extra_rollouts=self.extra[key.of_training("")],
        )

    def others(self, key: CellKey) -> dict[str, CellKey | None]:
        """The cells that a cell is compared with, by the columns of `Cell`; None where there is none."""
        baseline = key.baseline if key.baseline and key.baseline.without_measure in self.planned else None
        equal = stability.same_rollouts(key, self.scores, self.planned) if _is_accuracy(key) else None
        return {"difference": baseline, "change": key.default, "same_rollouts": equal}

    def printed_numbers(self, key: CellKey) -> tuple[float | None, float | None]:
        """The paper's value of a cell, and its difference from that of the baseline.

        One without a setting stands for every setting that the benchmark is out of distribution for.
        """
        own = key._replace(setting="") if key.role == "out" and key not in self.printed else key
        if own not in self.printed:
            return None, None
        row = self.printed[own]
        return row.mean, None if pd.isna(row.difference) else row.difference

    def gains(self, key: CellKey) -> Iterator[Gain]:
        """A row for each seed of a difference or a change."""
        others = self.others(key)
        for kind, name in (("difference", "method"), ("change", "variant")):
            other = others[kind]
            for seed in paired.shared_seeds([key, other], self.scores):
                gain = self.scores[key][seed].value - self.scores[other][seed].value
                yield Gain(**key._asdict(), seed=seed, kind=kind, baseline=getattr(other, name), gain=gain)


def _columns(name: str, estimate: Estimate, margin: float | None) -> Iterator[tuple[str, Any]]:
    low, high = estimate.limits()
    yield name, estimate.mean
    yield f"{name}_low", low
    yield f"{name}_high", high
    yield f"{name}_seeds", estimate.seeds or None
    yield f"{name}_verdict", None if margin is None else gain_verdict(estimate, margin)
    yield f"{name}_detectable", None if estimate.seeds == 1 else estimate.detectable


def _excludes(estimate: Estimate, published: float | None) -> bool | None:
    low, high = estimate.limits()
    return None if low is None or estimate.seeds == 1 or published is None else not low <= published <= high


def _over(key: CellKey, scores: Scores) -> str | None:
    """What the interval of the mean is taken over."""
    seeds = scores.get(key, {})
    first = next(iter(seeds.values()), None)
    if first is None or first.values is None or len(first.values) == 1:
        return "seeds" if len(seeds) > 1 else None
    return "seeds and problems" if len(seeds) > 1 else "problems"


def _is_accuracy(key: CellKey) -> bool:
    """Whether more is better, and the unit a share of problems."""
    return key.role in ("in", "out") and not key.measure.startswith("rate-")


def main(arguments: list[str] | None = None) -> None:
    """Summarise scores over seeds and problems."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--plan", required=True, help="plan.json of the study")
    parser.add_argument("--scores", type=Path, required=True, help="scores.jsonl, one Score a line")
    parser.add_argument("--published", help="the paper's numbers, one Published a row")
    parser.add_argument("--output", type=Path, required=True, help="summary.csv, one Cell a row")
    parser.add_argument("--gains", type=Path, required=True, help="gains.csv, one Gain a row")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        plan = read_json(options.plan)
        published = as_cells(read_published(options.published)) if options.published else None
        summary = summarise(plan, read_scores(options.scores, planned_seeds(plan)), published)
        write_csv(options.output, Cell, summary.cells)
        write_csv(options.gains, Gain, summary.gains)


if __name__ == "__main__":
    main()
