"""Grades, sign-flip rates and metrics of every run of a study -> scores.csv, values.jsonl and curves.csv.

`python -m mcgrpo.collect --plan plan.json --results results/STUDY --scores FILE --values FILE --curves FILE`
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mcgrpo.curves import cell, curve, training_measures
from mcgrpo.files import (
    RecordError,
    as_record,
    iter_json_lines,
    read_json,
    read_jsonl,
    write_csv,
    write_jsonl,
)
from mcgrpo.measures import Measure, measures, read_grades, released
from mcgrpo.methods import UNTRAINED
from mcgrpo.records import (
    PROTOCOL_SUFFIXES,
    CurvePoint,
    FlipRates,
    ProblemValues,
    Role,
    Run,
    Score,
)

PROTOCOLS = {"paper": measures, "released": released}
"""The measures of each protocol of evaluation."""


def evaluation_measures(folder: Path, benchmark: str, grading: Sequence[str]) -> Iterator[Measure]:
    """Of one run on one benchmark, under each protocol that it was graded by."""
    for protocol, of in PROTOCOLS.items():
        if protocol in grading:
            path = folder / f"{benchmark}{PROTOCOL_SUFFIXES[protocol]}.jsonl"
            yield from of(read_grades(path), str(path))


def trained(folder: Path, run: Run) -> tuple[list[dict[str, Any]], float]:
    """(metrics, seconds) of a training.

    Raises:
        RecordError: if it has not finished, or is of another run than the plan's.
    """
    path = folder / "run.json"
    record = read_json(path)
    outcome = record.pop("outcome", {})
    if outcome.get("status") != "finished":
        raise RecordError(f"{path}: this training has not finished")
    if record != asdict(run):
        odd = next((name for name, value in asdict(run).items() if record.get(name) != value), "a field")
        raise RecordError(f"{path}: this training is not the plan's: {odd} differs")
    return [metrics for _, metrics in iter_json_lines(folder / "metrics.jsonl")], outcome["seconds"]


@dataclass
class Results:
    """What a study's files amount to: the rows of scores.csv, values.jsonl and curves.csv, and what was not there."""

    scores: list[Score] = field(default_factory=list)
    values: list[ProblemValues] = field(default_factory=list)
    curves: list[CurvePoint] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, run: Run, benchmark: str, role: Role, measures: Iterable[Measure]) -> None:
        """Measures with a value per problem."""
        key = {**cell(run), "benchmark": benchmark, "role": role}
        for found in measures:
            key["measure"] = found.name
            self.scores.append(
                Score(**key, value=found.value, n=len(found.values), standard_error=found.standard_error)
            )
            self.values.append(ProblemValues(**key, values=found.values, problems=found.problems))


def collect(plan: dict[str, Any], folder: Path, partial: bool = False) -> Results:
    """Every score and curve of the plan's runs; with `partial`, of those that are there.

    Raises:
        RecordError: for a file that does not hold what it should; without `partial`, for one that is missing.
    """
    found = Results()
    for row in plan["runs"]:
        run = as_record(Run, row, "plan")
        for part in parts(plan, folder, run):
            try:
                part(found)
            except RecordError as error:
                if not partial:
                    raise
                found.missing.append(str(error))
    return found


def parts(plan: dict[str, Any], folder: Path, run: Run) -> Iterator[Callable[[Results], None]]:
    """What is to be read of one run, each to be added to the results when it is called."""
    for benchmark, role in plan["evaluations"][run.name].items():
        yield lambda into, b=benchmark, r=role: into.add(
            run, b, r, list(evaluation_measures(folder / "grades" / run.name, b, plan["grading"]))
        )
    if spec := plan["flips"].get(run.name):
        path = folder / "flips" / run.name / f"{spec['benchmark']}.jsonl"
        yield lambda into: into.add(run, spec["benchmark"], "flips", flip_measures(path))
    if run.method != UNTRAINED:
        yield lambda into: add_training(into, run, folder / "runs" / run.name)


def flip_measures(path: Path) -> list[Measure]:
    """The sign-flip rates of a run."""
    return [Measure(row.measure, row.values, row.problems) for row in read_jsonl(path, FlipRates)]


def add_training(into: Results, run: Run, folder: Path) -> None:
    """The curve of a training, and its measures with n steps."""
    metrics, seconds = trained(folder, run)
    points = curve(run, metrics)
    into.curves += points
    key = {**cell(run), "benchmark": "train", "role": "train"}
    for name, value in training_measures(points, seconds):
        into.scores.append(Score(**key, measure=name, value=value, n=len(points)))


def main() -> None:
    """Collect a study's results into scores.csv, values.jsonl and curves.csv."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--values", type=Path, required=True)
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--partial", action="store_true", help="take what is there, and name what is not")
    options = parser.parse_args()
    try:
        found = collect(read_json(options.plan), options.results, options.partial)
    except RecordError as error:
        raise SystemExit(f"error: {error}") from None
    write_csv(options.scores, Score, found.scores)
    write_jsonl(options.values, found.values)
    write_csv(options.curves, CurvePoint, found.curves)
    for line in found.missing:
        print(f"missing: {line}")
    print(f"{len(found.scores)} scores and {len(found.curves)} steps")


if __name__ == "__main__":
    main()
