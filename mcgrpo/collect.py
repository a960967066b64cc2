"""Grades and metrics of every run of a study -> scores.csv and curves.csv.

`python -m mcgrpo.collect --plan plan.json --results results/STUDY --scores FILE --curves FILE`
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mcgrpo.methods import UNTRAINED
from mcgrpo.records import (
    CurvePoint,
    Grade,
    RecordError,
    Run,
    Score,
    as_record,
    iter_json_lines,
    read_json,
    write_csv,
)
from mcgrpo.rewards import is_accurate

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
    "seconds_generation": "seconds/generation",
    "seconds_rewards": "seconds/rewards",
    "seconds_logprobs": "seconds/logprobs",
    "seconds_update": "seconds/update",
}
"""Columns of curves.csv, and the names they are logged under in metrics.jsonl."""


def cell(run: Run) -> dict[str, Any]:
    """The columns that say which run a row belongs to."""
    names = ("setting", "method", "num_generations", "variant", "seed")
    return {name: getattr(run, name) for name in names}


def accuracies(grades: Iterable[Grade], where: str) -> Iterator[tuple[str, float, int]]:
    """(measure, value in [0, 1], problems): `greedy` and `avg@k`, and the same counting exact matches only.

    avg@k is the mean accuracy over the k samples of each problem, k being the same for all.

    Raises:
        RecordError: if there are no grades, or problems have different numbers of samples.
    """
    by_decoding: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for grade in grades:
        by_decoding[grade.decoding][grade.id].append(grade.verdict)
    if not by_decoding:
        raise RecordError(f"{where}: no grades")
    for decoding, problems in by_decoding.items():
        samples = {len(verdicts) for verdicts in problems.values()}
        if len(samples) > 1:
            raise RecordError(f"{where}: problems have {min(samples)} to {max(samples)} {decoding} samples each")
        name = "greedy" if decoding == "greedy" else f"avg@{samples.pop()}"
        flat = [verdict for verdicts in problems.values() for verdict in verdicts]
        yield name, sum(map(is_accurate, flat)) / len(flat), len(problems)
        yield f"exact-{name}", flat.count("correct") / len(flat), len(problems)


def curve(run: Run, metrics: list[dict[str, Any]]) -> list[CurvePoint]:
    """The rows of one run in curves.csv."""
    return [
        CurvePoint(**cell(run), step=row["step"], **{column: row.get(name) for column, name in COLUMNS.items()})
        for row in metrics
    ]


def training_measures(points: list[CurvePoint], seconds: float) -> Iterator[tuple[str, float, int]]:
    """(measure, value, steps) of the training itself: its seconds, and means over steps (over the last tenth: reward).

    Values that are not finite (a gradient that overflowed) are left out; `steps` counts all steps of the run.
    """
    yield "seconds", seconds, len(points)
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
            yield measure, sum(values) / len(values), len(points)


def collect(plan: dict[str, Any], results: Path) -> tuple[list[Score], list[CurvePoint]]:
    """Every score and curve of the plan's runs."""
    scores: list[Score] = []
    curves: list[CurvePoint] = []
    for row in plan["runs"]:
        run = as_record(Run, row, "plan")

        def score(benchmark: str, role: str, measure: str, value: float, n: int, run: Run = run) -> None:
            scores.append(Score(**cell(run), benchmark=benchmark, role=role, measure=measure, value=value, n=n))

        for benchmark, role in plan["benchmarks"][run.setting].items():
            path = results / "grades" / run.name / f"{benchmark}.jsonl"
            for found in accuracies(read_grades(path), str(path)):
                score(benchmark, role, *found)
        if run.method != UNTRAINED:
            folder = results / "runs" / run.name
            points = curve(run, [metrics for _, metrics in iter_json_lines(folder / "metrics.jsonl")])
            curves += points
            outcome = read_json(folder / "run.json").get("outcome", {})
            if outcome.get("status") != "finished":
                raise RecordError(f"{folder / 'run.json'}: this training has not finished")
            for found in training_measures(points, outcome["seconds"]):
                score("train", "train", *found)
    return scores, curves


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
