"""scores.jsonl to summary.csv and gains.csv: every planned cell, and paired with the cells beside it.

`python -m mcgrpo.analyse.summarise --results results/STUDY`

Intervals of measures with a value per problem are over seeds and problems, those of others over seeds
(`mcgrpo.analyse.crossed`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from mcgrpo import command_line, shipped
from mcgrpo.analyse import scored
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, Cell, Gain
from mcgrpo.analyse.scored import Planned, Scores
from mcgrpo.analyse.stats import gain_verdict
from mcgrpo.files import write_csv
from mcgrpo.records import Plan
from mcgrpo.study.estimators import planned_extra
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import ResultFiles
from mcgrpo.study.planned import read_plan
from mcgrpo.study.variants import is_rival

COLLAPSE = 0.1
"""A seed has collapsed if its accuracy is this far, 10 points, below the median seed of the mean-centred method.

That is the method of the same loss at the same G, under the same variant, or under the default if that is all there is
or the variant is another estimator (a rival).
"""


class Summary(NamedTuple):
    """The rows of summary.csv and gains.csv."""

    cells: list[Cell]
    gains: list[Gain]


def summarise(plan: Plan, scores: Scores, printed: Mapping[CellKey, float] | None = None) -> Summary:
    """A `Cell` for each planned cell, benchmark and measure, and a `Gain` for each seed of its paired differences.

    Args:
        plan: of `mcgrpo.study.plan`: its `runs`, `benchmarks` (for the order of settings), `evaluations`, `flips`,
            `equivalence_margin` and (headline) `measures` are read.
        scores: of this plan, by `mcgrpo.analyse.scored.by_cell`.
        printed: the paper's numbers, of `mcgrpo.analyse.published.as_cells`.

    Raises:
        ValueError: for an unknown method.
    """
    planned = scored.planned_seeds(plan)
    study = _Study(scores, planned, printed or {}, extra_rollouts(plan, scores), plan.equivalence_margin)
    rows = planned_rows(plan, planned, scores)
    return Summary([study.cell(key) for key in rows], [gain for key in rows for gain in study.gains(key)])


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
    """Rollouts drawn of each prompt beside G, by trainings; those of somebody's own estimator once one has finished."""
    extra = {}
    for run in plan.runs:
        key = CellKey(run.setting, run.variant, "train", "train", "", run.num_generations, run.method)
        counted = scores.get(key.of_training(EXTRA_ROLLOUTS))
        extra[key] = round(next(iter(counted.values())).value) if counted else planned_extra(run)
    return extra


@dataclass(frozen=True)
class _Study:
    """What rows are made of."""

    scores: Scores
    planned: Planned
    printed: Mapping[CellKey | None, float]
    extra: Mapping[CellKey, int | None]
    margin: float

    def cell(self, key: CellKey) -> Cell:
        """A row of the summary."""
        others, seeds = self.others(key), self.scores.get(key, {})
        own, first = scored.mean(key, self.scores), next(iter(seeds.values()), None)
        has_problems = first is not None and first.values is not None and len(first.values) > 1
        over = ["seeds"] * (len(seeds) > 1) + ["problems"] * has_problems
        numbers: dict[str, Any] = {"planned": len(self.planned[key.without_measure]), "seeds": own.seeds}
        numbers |= {"n": first and first.n, "over": " and ".join(over) or None, "mean": own.mean}
        numbers["low"], numbers["high"] = own.limits()
        for name, other in others.items():
            numbers |= self.difference(name, key, other)
        numbers["baseline"] = others["difference"] and others["difference"].method
        numbers["same_rollouts_generations"] = others["same_rollouts"] and others["same_rollouts"].num_generations
        numbers["extra_rollouts"] = self.extra[key.of_training("")]
        if key.is_accuracy:
            numbers["equivalence_margin"] = self.margin
            numbers["worst"] = min((score.value for score in seeds.values()), default=None)
            numbers["collapsed"] = self.collapsed(key)
        return Cell(**key._asdict(), **numbers, **self.published(key, numbers))

    def others(self, key: CellKey) -> dict[str, CellKey | None]:
        """The cells that a cell is compared with, by the columns of `Cell`; None where there is none."""
        baseline = key.baseline if key.baseline and key.baseline.without_measure in self.planned else None
        equal = self.same_rollouts(key) if key.is_accuracy else None
        return {"difference": baseline, "change": key.default, "same_rollouts": equal}

    def same_rollouts(self, key: CellKey) -> CellKey | None:
        """The mean-centred cell of the default variant whose trainings draw as many rollouts, at another G or batch.

        None for the untrained model, if there is no such cell, and if rollouts are unknown.
        """
        own, rollouts = key.mean_centred, self.rollouts(key)
        if key.method == UNTRAINED or rollouts is None:
            return None
        sizes = sorted({each.num_generations for each in self.planned})
        others = (own._replace(num_generations=size) for size in sizes)
        equal = (each for each in others if each in self.scores and each != own and self.rollouts(each) == rollouts)
        return next(equal, None)

    def rollouts(self, key: CellKey) -> float | None:
        """Rollouts of a training of the cell, the mean over its seeds."""
        seeds = self.scores.get(key.of_training("rollouts"), {})
        return sum(score.value for score in seeds.values()) / len(seeds) if seeds else None

    def collapsed(self, key: CellKey) -> float | None:
        """The share of seeds that have collapsed, see `COLLAPSE`; None without a seed or one to compare with."""
        own, seeds = key.mean_centred, self.scores.get(key, {})
        same = own if is_rival(key.variant) else own._replace(variant=key.variant)
        beside = self.scores.get(same) or self.scores.get(own, {})
        if key.method == UNTRAINED or not seeds or not beside:
            return None
        usual = median(score.value for score in beside.values())
        return sum(score.value < usual - COLLAPSE for score in seeds.values()) / len(seeds)

    def difference(self, name: str, key: CellKey, other: CellKey | None) -> dict[str, Any]:
        """The columns of a paired difference."""
        gain = scored.difference(key, other, self.scores)
        low, high = gain.limits()
        return {
            name: gain.mean,
            f"{name}_low": low,
            f"{name}_high": high,
            f"{name}_seeds": gain.seeds or None,
            f"{name}_verdict": gain_verdict(gain, self.margin) if key.is_accuracy else None,
            f"{name}_detectable": None if gain.seeds == 1 else gain.detectable,
        }

    def published(self, key: CellKey, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of the paper's value, and of its difference from that of the baseline.

        One without a setting stands for every setting that the benchmark is out of distribution for.
        """
        own = key._replace(setting="") if key.role == "out" and key not in self.printed else key
        if own not in self.printed:
            return {}
        found: dict[str, Any] = {"published": self.printed[own]}
        if own.baseline in self.printed:
            gain = found["published_difference"] = self.printed[own] - self.printed[own.baseline]
            if numbers["difference_low"] is not None and numbers["difference_seeds"] > 1:
                found["difference_excludes_published"] = (
                    not numbers["difference_low"] <= gain <= numbers["difference_high"]
                )
        return found

    def gains(self, key: CellKey) -> Iterator[Gain]:
        """A row for each seed of a difference or a change."""
        others = self.others(key)
        for kind, name in (("difference", "method"), ("change", "variant")):
            other = others[kind]
            for seed in scored.shared_seeds([key, other], self.scores):
                gain = self.scores[key][seed].value - self.scores[other][seed].value
                yield Gain(**key._asdict(), seed=seed, kind=kind, baseline=getattr(other, name), gain=gain)


def main(arguments: list[str] | None = None) -> None:
    """Summarise scores over seeds and problems."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY: plan.json, scores.jsonl")
    files = ResultFiles(parser.parse_args(arguments).results)
    with command_line.errors(ValueError):
        printed = as_cells(read_published(shipped.PUBLISHED))
        summary = summarise(read_plan(files.plan), scored.read_scores(files.scores), printed)
        write_csv(files.summary, Cell, summary.cells)
        write_csv(files.gains, Gain, summary.gains)


if __name__ == "__main__":
    main()
