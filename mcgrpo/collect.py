"""Grades and metrics of every run of a study -> scores.csv and curves.csv.

`python -m mcgrpo.collect --plan plan.json --results results/STUDY --scores FILE --curves FILE`
"""

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mcgrpo.files import RecordError, as_record, iter_json_lines, read_json, write_csv
from mcgrpo.measures import Measure, measures, released
from mcgrpo.methods import UNTRAINED
from mcgrpo.records import PROTOCOL_SUFFIXES, CurvePoint, Grade, Role, Run, Score

COLUMNS = {
    "reward": "drawn/reward",
    "loss": "loss",
    "grad_norm": "grad_norm",
    "kl": "kl",
    "entropy": "entropy",
    "completion_length": "completions/mean_length",
    "advantage_abs_max": "advantage/abs_max",
    "frac_scale_zero": "advantage/frac_scale_zero",
    "frac_advantage_zero": "advantage/frac_zero",
    "flips_mean_median": "flips/mean_median",
    "flips_loo_mean": "flips/loo_mean",
    "flips_loo_median": "flips/loo_median",
    "seconds_generation": "seconds/generation",
    "seconds_rewards": "seconds/rewards",
    "seconds_logprobs": "seconds/logprobs",
    "seconds_update": "seconds/update",
}
"""Columns of curves.csv, and the names they are logged under in metrics.jsonl."""


PROTOCOLS = {"paper": measures, "released": released}
"""The measures of each protocol of evaluation."""


def cell(run: Run) -> dict[str, Any]:
    """The columns that say which run a row belongs to."""
    names = ("setting", "method", "num_generations", "variant", "seed")
    return {name: getattr(run, name) for name in names}


def curve(run: Run, metrics: list[dict[str, Any]]) -> list[CurvePoint]:
    """The rows of one run in curves.csv."""
    return [
        CurvePoint(**cell(run), step=row["step"], **{column: row.get(name) for column, name in COLUMNS.items()})
        for row in metrics
    ]


def training_measures(points: list[CurvePoint], seconds: float) -> Iterator[Measure]:
    """Of the training itself, with n steps: its seconds, and means over steps (over the last tenth: the reward).

    Values that are not finite (a gradient that overflowed) are left out; n counts all steps of the run.
    """
    yield Measure("seconds", seconds, len(points))
    last = points[-max(1, len(points) // 10) :]
    for measure, column, over in (
        ("reward", "reward", last),
        ("frac_scale_zero", "frac_scale_zero", points),
        ("frac_advantage_zero", "frac_advantage_zero", points),
        ("grad_norm", "grad_norm", points),
    ):
        logged = [value for point in over if (value := getattr(point, column)) is not None]
        values = [value for value in logged if math.isfinite(value)]
        if values:
            yield Measure(measure, sum(values) / len(values), len(points))


def evaluation_measures(folder: Path, benchmark: str, protocols: Sequence[str]) -> Iterator[Measure]:
    """Of one run on one benchmark, under each protocol that it was graded by."""
    for protocol, of in PROTOCOLS.items():
        if protocol in protocols:
            path = folder / f"{benchmark}{PROTOCOL_SUFFIXES[protocol]}.jsonl"
            yield from of(read_grades(path), str(path))


def trained(folder: Path) -> tuple[list[dict[str, Any]], float]:
    """(metrics, seconds) of a training.

    Raises:
        RecordError: if it has not finished.
    """
    outcome = read_json(folder / "run.json").get("outcome", {})
    if outcome.get("status") != "finished":
        raise RecordError(f"{folder / 'run.json'}: this training has not finished")
    return [metrics for _, metrics in iter_json_lines(folder / "metrics.jsonl")], outcome["seconds"]


def collect(plan: dict[str, Any], results: Path) -> tuple[list[Score], list[CurvePoint]]:
    """Every score and curve of the plan's runs."""
    scores: list[Score] = []
    curves: list[CurvePoint] = []
    for row in plan["runs"]:
        run = as_record(Run, row, "plan")
        for benchmark, role in plan["benchmarks"][run.setting].items():
            found = evaluation_measures(results / "grades" / run.name, benchmark, plan["protocols"])
            scores += as_scores(run, benchmark, role, found)
        if run.method != UNTRAINED:
            metrics, seconds = trained(results / "runs" / run.name)
            points = curve(run, metrics)
            curves += points
            scores += as_scores(run, "train", "train", training_measures(points, seconds))
    return scores, curves


def as_scores(run: Run, benchmark: str, role: Role, found: Iterable[Measure]) -> Iterator[Score]:
    """Measures as rows of scores.csv."""
    for name, value, n, error in found:
        yield Score(**cell(run), benchmark=benchmark, role=role, measure=name, value=value, n=n, standard_error=error)


def read_grades(path: Path) -> Iterator[Grade]:
    """The grades of a file; columns that `grade` carries through from its input are left out."""
    names = Grade.__dataclass_fields__
    for where, row in iter_json_lines(path):
        yield as_record(Grade, {name: row[name] for name in names if name in row}, where)


def main() -> None:
    """Collect a study's results into scores.csv and curves.csv."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--curves", type=Path, required=True)
    options = parser.parse_args()
    try:
        scores, curves = collect(read_json(options.plan), options.results)
    except RecordError as error:
        raise SystemExit(f"error: {error}") from None
    write_csv(options.scores, Score, scores)
    write_csv(options.curves, CurvePoint, curves)
    print(f"{len(scores)} scores and {len(curves)} steps")


if __name__ == "__main__":
    main()
