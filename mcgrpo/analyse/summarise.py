"""scores.csv and values.jsonl to summary.csv and gains.csv: every planned cell, and paired with the cells beside it.

python -m mcgrpo.analyse.summarise --plan plan.json --scores scores.csv --values values.jsonl [--published
    published.csv] --output summary.csv --gains gains.csv

Intervals of measures with a value per problem are over seeds and problems, those of others over seeds
(`mcgrpo.analyse.crossed`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mcgrpo import command_line
from mcgrpo.analyse import paired, stability
from mcgrpo.analyse.cells import CellKey
from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.published import as_cells, read_published
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, Cell, Gain, IntervalOver, ProblemValues, Score
from mcgrpo.analyse.scored import Scores, found_scores, planned_seeds, read_values
from mcgrpo.analyse.stats import Estimate, gain_verdict
from mcgrpo.files import as_record, read_json, write_csv
from mcgrpo.records import Role, Run
from mcgrpo.study.estimators import planned_extra
from mcgrpo.sums import seal

Planned = Mapping[CellKey, set[int]]
"""As returned by `mcgrpo.analyse.scored.planned_seeds`."""


def planned_rows(planned: dict[CellKey, set[int]], scores: Scores, headline: list[str]) -> list[CellKey]:
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


Printed = dict[CellKey, tuple[float, float | None]]
"""The paper's value and difference of a row; the setting is empty where it names none."""


def printed_numbers(published: pd.DataFrame) -> Printed:
    """Cells of `mcgrpo.analyse.published.as_cells`, by row."""
    return {
        CellKey.of(row): (row.mean, None if pd.isna(row.difference) else row.difference)
        for row in published.itertuples(index=False)
    }


def _printed(key: CellKey, printed: Printed) -> tuple[float | None, float | None]:
    """A number without a setting stands for every setting that the benchmark is out of distribution for."""
    unnamed = printed.get(key._replace(setting="")) if key.role == "out" else None
    return printed.get(key) or unnamed or (None, None)


@dataclass(frozen=True)
class Summary:
    """What summary.csv and gains.csv hold."""

    cells: list[Cell]
    gains: list[Gain]


def summarise(
    plan: dict[str, Any],
    scores: pd.DataFrame,
    values: Iterable[ProblemValues] = (),
    published: pd.DataFrame | None = None,
) -> Summary:
    """A `Cell` for each planned cell, benchmark and measure, and a `Gain` for each seed of its paired differences.

    Args:
        plan: of `mcgrpo.study.plan`: its `runs`, `benchmarks` (for the order of settings), `evaluations`, `flips`,
            `equivalence_margin` and (headline) `measures` are read.
        scores: one row per `Score`.
        values: what scores are the means of, in any order; measures without values have none in any cell.
        published: the paper's numbers, of `mcgrpo.analyse.published.as_cells`.

    Raises:
        ValueError: naming the row, see `found_scores`; for an unknown method.
    """
    planned = planned_seeds(plan)
    by_cell = found_scores(scores, values, planned)
    settings = list(plan["benchmarks"])
    rows = planned_rows(planned, by_cell, plan["measures"])
    rows.sort(key=lambda key: settings.index(key.setting))
    printed = {} if published is None else printed_numbers(published)
    margin = plan["equivalence_margin"]
    extra = extra_rollouts(plan, by_cell)
    cells = [_cell(key, by_cell, planned, _printed(key, printed), margin, extra[_trained(key)]) for key in rows]
    return Summary(cells, [gain for key in rows for gain in _gains(key, by_cell, planned)])


def extra_rollouts(plan: dict[str, Any], scores: Scores) -> dict[tuple[str, str, int, str], int | None]:
    """Rollouts drawn of each prompt beside G, by setting, variant, G and method.

    Of somebody's own estimator they are known once a training has finished.
    """
    runs = (as_record(Run, row, "plan") for row in plan["runs"])
    extra = {(run.setting, run.variant, run.num_generations, run.method): planned_extra(run) for run in runs}
    for key, seeds in scores.items():
        if key.measure == EXTRA_ROLLOUTS:
            extra[_trained(key)] = round(next(iter(seeds.values())).value)
    return extra


def _trained(key: CellKey) -> tuple[str, str, int, str]:
    return key.setting, key.variant, key.num_generations, key.method


def _cell(
    key: CellKey,
    scores: Scores,
    planned: Planned,
    printed: tuple[float | None, float | None],
    margin: float,
    extra: int | None,
) -> Cell:
    own, baseline = paired.mean(key, scores), _baseline(key, planned)
    sizes = sorted({each.num_generations for each in planned})
    equal = stability.same_rollouts(key, scores, sizes) if _is_accuracy(key) else None
    difference, change, of_equal = (paired.difference(key, other, scores) for other in (baseline, key.default, equal))
    low, high = own.limits()
    margin_of = margin if _is_accuracy(key) else None
    return Cell(
        **key._asdict(),
        planned=len(planned[key.without_measure]),
        seeds=own.seeds,
        n=next((score.n for score in scores.get(key, {}).values()), None),
        mean=own.mean,
        low=low,
        high=high,
        over=_over(key, scores),
        baseline=baseline and baseline.method,
        **_columns("difference", difference, margin_of),
        **_columns("change", change, margin_of),
        published=printed[0],
        published_difference=printed[1],
        difference_excludes_published=_excludes(difference, printed[1]),
        equivalence_margin=margin_of,
        same_rollouts_generations=equal and equal.num_generations,
        **_columns("same_rollouts", of_equal, margin_of),
        worst=stability.worst(key, scores) if _is_accuracy(key) else None,
        collapsed=stability.collapsed(key, scores) if _is_accuracy(key) else None,
        extra_rollouts=extra,
    )


def _columns(name: str, estimate: Estimate, margin: float | None) -> dict[str, Any]:
    low, high = estimate.limits()
    return {
        name: estimate.mean,
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_seeds": estimate.seeds or None,
        f"{name}_verdict": None if margin is None else gain_verdict(estimate, margin),
        f"{name}_detectable": None if estimate.seeds == 1 else estimate.detectable,
    }


def _excludes(estimate: Estimate, published: float | None) -> bool | None:
    low, high = estimate.limits()
    return None if low is None or estimate.seeds == 1 or published is None else not low <= published <= high


def _over(key: CellKey, scores: Scores) -> IntervalOver | None:
    """What the interval of the mean is taken over."""
    seeds = scores.get(key, {})
    first = next(iter(seeds.values()), None)
    if first is None or first.values is None or len(first.values) == 1:
        return "seeds" if len(seeds) > 1 else None
    return "seeds and problems" if len(seeds) > 1 else "problems"


def _is_accuracy(key: CellKey) -> bool:
    """Whether more is better, and the unit a share of problems."""
    return key.role in ("in", "out") and not key.measure.startswith("rate-")


def _baseline(key: CellKey, planned: Planned) -> CellKey | None:
    return key.baseline if key.baseline and key.baseline.without_measure in planned else None


def _gains(key: CellKey, scores: Scores, planned: Planned) -> Iterator[Gain]:
    for kind, other in (("difference", _baseline(key, planned)), ("change", key.default)):
        for seed in paired.shared_seeds([key, other], scores):
            yield Gain(
                seed=seed,
                kind=kind,
                baseline=other.method if kind == "difference" else other.variant,
                gain=scores[key][seed].value - scores[other][seed].value,
                **key._asdict(),
            )


def main(arguments: list[str] | None = None) -> None:
    """Summarise scores.csv and values.jsonl."""
    parser = command_line.parser("Summarise scores over seeds and problems.")
    parser.add_argument("--plan", required=True, help="plan.json of the study")
    parser.add_argument("--scores", required=True, help="scores.csv, one Score a row")
    parser.add_argument("--values", required=True, help="values.jsonl, one ProblemValues a line")
    parser.add_argument("--published", help="the paper's numbers, one Published a row")
    parser.add_argument("--output", required=True, help="summary.csv, one Cell a row")
    parser.add_argument("--gains", required=True, help="gains.csv, one Gain a row")
    options = parser.parse_args(arguments)
    with command_line.errors(ValueError):
        published = as_cells(read_published(options.published)) if options.published else None
        scores, values = read_frame(options.scores, Score), read_values(options.values)
        summary = summarise(read_json(options.plan), scores, values, published)
        write_csv(options.output, Cell, summary.cells)
        write_csv(options.gains, Gain, summary.gains)
        for path in (options.output, options.gains):
            seal(Path(path))


if __name__ == "__main__":
    main()
