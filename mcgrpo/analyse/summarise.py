"""scores.jsonl to summary.csv: every planned cell.

`python -m mcgrpo.analyse.summarise --results results/STUDY`

Intervals of measures with a value per problem are over seeds and problems, those of others over seeds
(`mcgrpo.analyse.crossed`).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from mcgrpo import command_line, shipped
from mcgrpo.analyse import scored, selections
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.published import as_cells, number_of, read_published
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, Cell
from mcgrpo.analyse.scored import Planned, Scores
from mcgrpo.records import Plan
from mcgrpo.study.estimators import planned_extra
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan
from mcgrpo.study.variants import is_rival
from mcgrpo.sums import write_table

COLLAPSE = 0.1
"""A seed has collapsed if its accuracy is this far, 10 points, below the median seed of the mean-centred method.

That is the method of the same loss at the same G, under the same variant, or under the default if that is all there is
or the variant is another estimator (a rival).
"""


def summarise(plan: Plan, scores: Scores, printed: Mapping[CellKey, float] | None = None) -> list[Cell]:
    """A `Cell` for each planned cell, benchmark and measure.

    Args:
        plan: of `mcgrpo.study.plan`: its `runs`, `benchmarks` (for the order of settings), `evaluations`, `flips` and
            (headline) `measures` are read.
        scores: of this plan, by `mcgrpo.analyse.scored.by_cell`.
        printed: the paper's numbers, of `mcgrpo.analyse.published.as_cells`.

    Raises:
        ValueError: for an unknown method.
    """
    planned = selections.planned_seeds(plan)
    study = _Study(scores, planned, printed or {}, extra_rollouts(plan, scores))
    return [study.cell(key) for key in planned_rows(plan, planned, scores)]


def planned_rows(plan: Plan, planned: Planned, scores: Scores) -> list[CellKey]:
    """Every row of the summary, in order: each planned cell and benchmark with the measures that any cell has there.

    Where no cell has any: the headline measures for an evaluation, the seconds for a training, none for sign flips.
    """

    def kind(key: CellKey) -> tuple[str, str]:  # benchmarks have the same measures in and out of distribution
        return "evaluation" if key.is_evaluation else key.role, key.benchmark

    measures: dict[tuple[str, str], set[str]] = defaultdict(set)
    for key in scores:
        measures[kind(key)].add(key.measure)
    measures["train", "train"].add("seconds")
    rows = [
        key._replace(measure=name)
        for key in planned
        for name in measures[kind(key)] or (plan.measures if key.is_evaluation else ())
    ]
    settings = list(plan.benchmarks)
    return sorted(rows, key=lambda key: (settings.index(key.setting), key.order))


def extra_rollouts(plan: Plan, scores: Scores) -> dict[CellKey, int | None]:
    """Rollouts drawn of each prompt beside G, by trainings; those of a user-defined estimator once one has finished."""
    extra = {}
    for run in plan.runs:
        key = CellKey(run.setting, run.variant, "train", "train", "", run.num_generations, run.method)
        counted = scores.get(key.of_training(EXTRA_ROLLOUTS))
        extra[key] = round(next(iter(counted.values())).value) if counted else planned_extra(run)
    for name, variants in plan.selections.items():
        extra |= {key._replace(variant=name): rows for key, rows in extra.items() if key.variant == variants[0]}
    return extra


@dataclass(frozen=True)
class _Study:
    """What rows are made of."""

    scores: Scores
    planned: Planned
    printed: Mapping[CellKey | None, float]
    extra: Mapping[CellKey, int | None]

    def cell(self, key: CellKey) -> Cell:
        """A row of the summary."""
        seeds = self.scores.get(key, {})
        own, first = scored.mean(key, self.scores), next(iter(seeds.values()), None)
        has_problems = first is not None and first.values is not None and len(first.values) > 1
        over = ["seeds"] * (len(seeds) > 1) + ["problems"] * has_problems
        low, high = own.limits()
        return Cell(
            **key._asdict(),
            decoding=key.decoding,
            planned=len(self.planned[key.without_measure]),
            seeds=own.seeds,
            n=first and first.n,
            mean=own.mean,
            low=low,
            high=high,
            over=" and ".join(over) or None,
            published=number_of(self.printed, key),
            worst=min((score.value for score in seeds.values()), default=None) if key.is_accuracy else None,
            collapsed=self.collapsed(key) if key.is_accuracy else None,
            extra_rollouts=self.extra[key.of_training("")],
        )

    def collapsed(self, key: CellKey) -> float | None:
        """The share of seeds that have collapsed, see `COLLAPSE`; None without a seed or one to compare with."""
        own, seeds = key.mean_centred, self.scores.get(key, {})
        same = own if is_rival(key.variant) else own._replace(variant=key.variant)
        beside = self.scores.get(same) or self.scores.get(own, {})
        if key.method == UNTRAINED or not seeds or not beside:
            return None
        usual = median(score.value for score in beside.values())
        return sum(score.value < usual - COLLAPSE for score in seeds.values()) / len(seeds)


def main(arguments: list[str] | None = None) -> None:
    """Summarise scores over seeds and problems."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY: plan.json, scores.jsonl")
    files = ResultFiles(parser.parse_args(arguments).results)
    with command_line.errors(ValueError):
        printed = as_cells(read_published(shipped.PUBLISHED))
        plan = read_plan(files.plan)
        scores = selections.with_selected(plan, scored.read_scores(files.scores))
        write_table(files.summary, Cell, summarise(plan, scores, printed))


if __name__ == "__main__":
    main()
