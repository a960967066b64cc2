"""Grades, sign-flip rates and metrics of every run of a study -> scores.jsonl and curves.csv.

`python -m mcgrpo.analyse.collect --plan plan.json --results results/STUDY --scores FILE --curves FILE`
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from mcgrpo import command_line
from mcgrpo.analyse.curves import cell, curve, training_measures
from mcgrpo.analyse.measures import Measure, measures, read_grades
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, GPUS, CurvePoint, FlipRates, Score
from mcgrpo.analyse.scored import measured_on, runs_of
from mcgrpo.files import RecordError, as_record, iter_json_lines, read_json, read_jsonl, write_csv, write_jsonl
from mcgrpo.records import Group, Run, run_name
from mcgrpo.study.estimators import planned_extra
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import GROUPS, METRICS, RECORD, ResultFiles
from mcgrpo.study.schedule import schedule
from mcgrpo.sums import WEIGHTS_LIST, check_seal, damage, seal


class Input(NamedTuple):
    """What a run was trained on, a data set or a model (`kind`), with the SHA-256 of its bytes."""

    kind: str
    name: str
    sha256: str
    run: str


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


def check_files(folder: Path) -> None:
    """Refuse what a training has left and does not hold what was written, by the sums in its run.json.

    Not its weights, which are checked where completions are drawn from them.

    Args:
        folder: of the run; it may not be there yet.

    Raises:
        RecordError: naming the file.
    """
    if not (folder / RECORD).is_file():
        return
    sums = read_json(folder / RECORD).get("outcome", {}).get("sums", {})
    sums.pop(WEIGHTS_LIST, None)
    if fault := damage(folder, sums):
        raise RecordError(f"{fault} (its sum is in {folder / RECORD}): remove {folder}, and the run is trained again")


def check_inputs(inputs: Iterable[Input]) -> None:
    """Refuse trainings of one data set or model that read different bytes.

    Raises:
        RecordError: naming up to three trainings of the rarer kind, and one of the other.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for each in inputs:
        found.setdefault((each.kind, each.name), {}).setdefault(each.sha256, []).append(each.run)
    for (kind, name), runs in found.items():
        if len(runs) > 1:
            few, *_, many = sorted(runs.values(), key=len)
            raise RecordError(
                f"{', '.join(few[:3])} ({len(few)} in all) had other files of {kind} {name!r} than {many[0]} "
                f"({len(many)} in all): remove one or the other, and they are trained again"
            )


@dataclass
class Results:
    """What a study's files amount to: the rows of scores.jsonl and curves.csv, what was read, what was not there."""

    scores: list[Score] = field(default_factory=list)
    curves: list[CurvePoint] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)

    def extend(self, other: "Results") -> None:
        """Append the rows of another part of the study."""
        for name, rows in vars(other).items():
            getattr(self, name).extend(rows)

    @contextmanager
    def listing(self, unfinished: bool) -> Iterator[None]:
        """Of an unfinished study, list what is missing or does not hold what it should."""
        try:
            yield
        except RecordError as error:
            if not unfinished:
                raise
            self.missing.append(str(error))


def collect(plan: dict[str, Any], folder: Path, unfinished: bool = False, processes: int = 1) -> Results:
    """Every score and curve of the plan's runs; of an unfinished study, of those that are there.

    Raises:
        RecordError: for trainings of different inputs; for a file that is missing or does not hold what it should,
            which is listed of an unfinished study.
    """
    results = Results()
    of_run = partial(collect_run, plan=plan, files=ResultFiles(folder), unfinished=unfinished)
    with ProcessPoolExecutor(processes, get_context("fork")) if processes > 1 else nullcontext() as pool:
        for part in pool.map(of_run, runs_of(plan), chunksize=8) if pool else map(of_run, runs_of(plan)):
            results.extend(part)
    check_inputs(results.inputs)
    return results


def collect_run(run: Run, plan: dict[str, Any], files: ResultFiles, unfinished: bool) -> Results:
    """The scores and the curve of one run, see `collect`; none of a run whose training is wrong or unfinished."""
    found, folder = Results(), files.run(run.name)
    with found.listing(unfinished):
        check_files(folder)
        outcome = finished(folder / RECORD, run) if run.method != UNTRAINED else {"started": 0.0}
        for kind, name in (("data", run.dataset), ("model", run.model)):
            if total := outcome.get(kind, {}).get("sha256"):
                found.inputs.append(Input(kind, name, total, run.name))
        for benchmark, role in measured_on(plan, run):
            with found.listing(unfinished):
                if role == "train":
                    found.extend(of_training(run, outcome, folder))
                    continue
                key = {**cell(run), "benchmark": benchmark, "role": role}
                protocols = ["flips"] if role == "flips" else plan["grading"]
                each = [of_benchmark(key, protocol, files, outcome["started"]) for protocol in protocols]
                found.scores += [score for scores in each for score in scores]
    return found


def of_benchmark(key: dict[str, Any], protocol: str, files: ResultFiles, since: float) -> list[Score]:
    """The scores of a run on a benchmark under a protocol of grading, or (`flips`) its sign-flip rates there.

    Args:
        key: the columns of `Score` up to the role.
        protocol: whose measures, see `mcgrpo.analyse.measures.MEASURES`.
        files: of the study.
        since: when the training started.

    Raises:
        RecordError: for a file that is wrong, or older than the training.
    """
    where = run_name(key), key["benchmark"]
    path = files.flips(*where) if protocol == "flips" else files.grades(*where, protocol)
    if path.exists() and path.stat().st_mtime < since:
        raise RecordError(f"{path}: older than the training that it should be of")
    if protocol == "flips":
        check_seal(path)
        found = [Measure(row.measure, row.values, row.problems) for row in read_jsonl(path, FlipRates)]
    else:
        found = measures(read_grades(path), str(path), protocol)
    return [Score(**key, measure=name, value=fmean(v), n=len(v), values=v, problems=ids) for name, v, ids in found]


def of_training(run: Run, outcome: Mapping[str, Any], folder: Path) -> Results:
    """The curve of a training, and its measures with n steps."""
    gpus = outcome.get("gpus", 0)
    processes = max(gpus, 1)
    batches = Counter(step for step, _ in schedule(run, processes, outcome["data"]["rows"]).generations())
    points = curve(run, [metrics for _, metrics in iter_json_lines(folder / METRICS)], processes, batches)
    found = training_measures(points, outcome["seconds"], run.training.get("max_grad_norm", 1.0))
    own = [] if planned_extra(run) is not None else [(EXTRA_ROLLOUTS, _extra_rollouts(run, folder))]
    key = {**cell(run), "benchmark": "train", "role": "train", "n": len(points)}
    values = [*found, (GPUS, gpus), *own]
    return Results([Score(**key, measure=name, value=float(value)) for name, value in values], points)


def _extra_rollouts(run: Run, folder: Path) -> int:
    """Those of somebody's own estimator, which is code: counted in its groups."""
    for where, row in iter_json_lines(folder / GROUPS):
        return len(as_record(Group, row, where).rewards) - run.num_generations
    raise RecordError(f"{folder / GROUPS}: holds no groups")


def main() -> None:
    """Collect a study's results into scores.jsonl and curves.csv."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--partial", action="store_true", help="take what is there, and name what is not")
    options = parser.parse_args()
    with command_line.errors(RecordError):
        results = collect(read_json(options.plan), options.results, options.partial, options.processes)
    write_jsonl(options.scores, results.scores)
    write_csv(options.curves, CurvePoint, results.curves)
    for path in (options.scores, options.curves):
        seal(path)
    for line in results.missing:
        print(f"missing: {line}")
    print(f"{len(results.scores)} scores and {len(results.curves)} steps")


if __name__ == "__main__":
    main()
