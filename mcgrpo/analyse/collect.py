"""Grades, sign-flip rates and metrics of every run of a study -> scores.csv, values.jsonl and curves.csv.

`python -m mcgrpo.analyse.collect --plan plan.json --results results/STUDY --scores FILE --values FILE --curves FILE`
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.analyse.curves import cell, curve, training_measures
from mcgrpo.analyse.measures import Measure, measures, read_grades, released, robust
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, GPUS, CurvePoint, FlipRates, ProblemValues, Score
from mcgrpo.files import (
    RecordError,
    as_record,
    iter_json_lines,
    read_json,
    read_jsonl,
    write_csv,
    write_jsonl,
)
from mcgrpo.records import Group, Role, Run
from mcgrpo.study.estimators import planned_extra
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import GROUPS, METRICS, RECORD, ResultFiles
from mcgrpo.study.schedule import schedule
from mcgrpo.sums import FOLDER_LIST, WEIGHTS_LIST, check_sealed_folder, damage, seal

MEASURES = {"paper": measures, "released": released, "robust": robust}
"""The measures of each protocol of evaluation."""
LARGEST_WEIGHTS = 1 << 30
"""Bytes: larger weights are not read once more here, only where completions are drawn from them."""


def finished(path: Path, run: Run) -> dict[str, Any]:
    """The outcome of a training, from its run.json.

    Raises:
        RecordError: if it has not finished, took no optimizer step, or is of another run than the plan's.
    """
    record = read_json(path)
    outcome = record.pop("outcome", {})
    if outcome.get("status") != "finished":
        raise RecordError(f"{path}: this training has not finished")
    if not outcome.get("steps"):
        raise RecordError(f"{path}: this training took no optimizer step: its model is the untrained one")
    if record != asdict(run):
        odd = next((name for name, value in asdict(run).items() if record.get(name) != value), "a field")
        raise RecordError(f"{path}: this training is not the plan's: {odd} differs")
    return outcome


def check_files(folder: Path, weights: Path) -> None:
    """Refuse what a training has left and does not hold what was written, by the sums in its run.json.

    Args:
        folder: of the run; it may not be there yet.
        weights: the folder of the trained model, which may be gone.

    Raises:
        RecordError: naming the file.
    """
    if not (folder / RECORD).is_file():
        return
    sums = read_json(folder / RECORD).get("outcome", {}).get("sums", {})
    listed = {FOLDER_LIST: sums.pop(WEIGHTS_LIST)} if WEIGHTS_LIST in sums else {}
    if fault := damage(folder, sums) or (damage(weights, listed) if weights.exists() else None):
        raise RecordError(f"{fault} (its sum is in {folder / RECORD}): remove {folder}, and the run is trained again")
    if sum(file.stat().st_size for file in weights.glob("*")) <= LARGEST_WEIGHTS:
        check_sealed_folder(weights)


@dataclass
class Results:
    """What a study's files amount to: the rows of scores.csv, values.jsonl and curves.csv, and what was not there."""

    scores: list[Score] = field(default_factory=list)
    values: list[ProblemValues] = field(default_factory=list)
    curves: list[CurvePoint] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def extend(self, other: "Results") -> None:
        """Append the rows of another part of the study."""
        for name, rows in vars(other).items():
            getattr(self, name).extend(rows)

    def add(self, run: Run, benchmark: str, role: Role, measures: Iterable[Measure]) -> None:
        """Measures with a value per problem."""
        key = {**cell(run), "benchmark": benchmark, "role": role}
        for measure in measures:
            key["measure"] = measure.name
            self.scores.append(
                Score(**key, value=measure.value, n=len(measure.values), standard_error=measure.standard_error)
            )
            self.values.append(ProblemValues(**key, values=measure.values, problems=measure.problems))


def collect(plan: dict[str, Any], folder: Path, unfinished: bool = False, processes: int = 1) -> Results:
    """Every score and curve of the plan's runs; of an unfinished study, of those that are there.

    Raises:
        RecordError: for a file that is missing or does not hold what it should. Of an unfinished study it is listed.
    """
    results = Results()
    of_run = partial(collect_run, plan=plan, files=ResultFiles(folder), unfinished=unfinished)
    with ProcessPoolExecutor(processes, get_context("fork")) if processes > 1 else nullcontext() as pool:
        for part in pool.map(of_run, plan["runs"], chunksize=8) if pool else map(of_run, plan["runs"]):
            results.extend(part)
    return results


def collect_run(row: dict[str, Any], plan: dict[str, Any], files: ResultFiles, unfinished: bool) -> Results:
    """The scores and the curve of one run, see `collect`."""
    run, results = as_record(Run, row, "plan"), Results()
    for part in (partial(check_run, run=run, files=files), *parts(plan, files, run)):
        try:
            part(results)
        except RecordError as error:
            if not unfinished:
                raise
            results.missing.append(str(error))
            if part.func is check_run:
                break
    return results


def check_run(into: Results, run: Run, files: ResultFiles) -> None:
    """Check a run's files first: nothing is collected of a run whose files have changed."""
    check_files(files.run(run.name), files.model(run.name))


def parts(plan: dict[str, Any], files: ResultFiles, run: Run) -> Iterator[Callable[[Results], None]]:
    """What is to be read of one run, each to be added to the results when it is called."""
    training = files.run(run.name) if run.method != UNTRAINED else None
    for benchmark, role in plan["evaluations"][run.name].items():
        yield partial(add_evaluation, run=run, training=training, files=files, benchmark=benchmark, role=role,
                      grading=plan["grading"])  # fmt: skip
    if spec := plan["flips"].get(run.name):
        yield partial(add_flips, run=run, training=training, files=files, benchmark=spec["benchmark"])
    if training:
        yield partial(add_training, run=run, folder=training)


def current(path: Path, run: Run, training: Path | None) -> Path:
    """The path of a result, once it is known to be of this training, and not of an earlier one.

    Raises:
        RecordError: where the training is unfinished, of other hyper-parameters, or younger than the result.
    """
    if training:
        record = finished(training / RECORD, run)
        if path.exists() and path.stat().st_mtime < record["started"]:
            raise RecordError(f"{path}: older than the training that it should be of")
    return path


def add_evaluation(
    into: Results,
    run: Run,
    training: Path | None,
    files: ResultFiles,
    benchmark: str,
    role: Role,
    grading: Sequence[str],
) -> None:
    """The measures of one benchmark, under each protocol that it was graded by."""
    evaluated: list[Measure] = []
    for protocol, of in MEASURES.items():
        if protocol in grading:
            path = current(files.grades(run.name, benchmark, protocol), run, training)
            evaluated += of(read_grades(path), str(path))
    into.add(run, benchmark, role, evaluated)


def add_flips(into: Results, run: Run, training: Path | None, files: ResultFiles, benchmark: str) -> None:
    """The sign-flip rates of a run."""
    rows = read_jsonl(current(files.flips(run.name, benchmark), run, training), FlipRates)
    into.add(run, benchmark, "flips", [Measure(row.measure, row.values, row.problems) for row in rows])


def add_training(into: Results, run: Run, folder: Path) -> None:
    """The curve of a training, and its measures with n steps."""
    outcome = finished(folder / RECORD, run)
    gpus = outcome.get("gpus", 0)
    processes = max(gpus, 1)
    batches = Counter(step for step, _ in schedule(run, processes, outcome["data"]["rows"]).generations())
    points = curve(run, [metrics for _, metrics in iter_json_lines(folder / METRICS)], processes, batches)
    into.curves += points
    key = {**cell(run), "benchmark": "train", "role": "train"}
    found = training_measures(points, outcome["seconds"], run.training.get("max_grad_norm", 1.0))
    own = [] if planned_extra(run) is not None else [(EXTRA_ROLLOUTS, _extra_rollouts(run, folder))]
    for name, value in [*found, (GPUS, gpus), *own]:
        into.scores.append(Score(**key, measure=name, value=value, n=len(points)))


def _extra_rollouts(run: Run, folder: Path) -> int:
    """Those of somebody's own estimator, which is code: counted in its groups."""
    for where, row in iter_json_lines(folder / GROUPS):
        return len(as_record(Group, row, where).rewards) - run.num_generations
    raise RecordError(f"{folder / GROUPS}: holds no groups")


def main() -> None:
    """Collect a study's results into scores.csv, values.jsonl and curves.csv."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--values", type=Path, required=True)
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--partial", action="store_true", help="take what is there, and name what is not")
    options = parser.parse_args()
    with command_line.errors(RecordError):
        results = collect(read_json(options.plan), options.results, options.partial, options.processes)
    write_csv(options.scores, Score, results.scores)
    write_jsonl(options.values, results.values)
    write_csv(options.curves, CurvePoint, results.curves)
    for path in (options.scores, options.values, options.curves):
        seal(path)
    for line in results.missing:
        print(f"missing: {line}")
    print(f"{len(results.scores)} scores and {len(results.curves)} steps")


if __name__ == "__main__":
    main()
