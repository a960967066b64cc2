"""Grades, sign-flip rates and metrics of every run of a study -> scores.jsonl and curves.csv.

`python -m mcgrpo.analyse.collect --results results/STUDY`
"""

import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean

from mcgrpo import command_line
from mcgrpo.analyse.curves import curve, of_run, training_measures
from mcgrpo.analyse.measures import Problems, asked, decoding_of, measures, read_grades, token_limits
from mcgrpo.analyse.records import EXTRA_ROLLOUTS, GPUS, CurvePoint, Measure, Score
from mcgrpo.analyse.scored import write_scores
from mcgrpo.files import RecordError, iter_json_lines, read_jsonl
from mcgrpo.records import Decoding, Outcome, Plan, Role, Run
from mcgrpo.study.estimators import planned_extra
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.paths import GROUPS, METRICS, RECORD, ResultFiles
from mcgrpo.study.planned import measured_on, read_plan
from mcgrpo.study.trained import read_record
from mcgrpo.sums import WEIGHTS_LIST, check_seal, damage, write_table

FORK = multiprocessing.get_context("fork")
MOST_PROCESSES, LEAST_RUNS = 8, 8
"""Processes that read files, and runs for each of them."""


def finished_outcome(folder: Path, run: Run) -> Outcome:
    """The outcome of a training, from its run.json.

    Raises:
        RecordError: if it has not finished, took no optimizer step, or is of another run than the plan's; if a file
            that it left is not what it wrote, by the sums in run.json. Weights are checked where they are read.
    """
    path = folder / RECORD
    record, outcome = read_record(path)
    if not (outcome and outcome.is_finished):
        raise RecordError(f"{path}: this training has not finished")
    if not (outcome.steps and outcome.data):
        raise RecordError(f"{path}: this training took no optimizer step: its model is the untrained one")
    if record != run:
        odd = next(name for name, value in vars(run).items() if getattr(record, name) != value)
        raise RecordError(f"{path}: this training is not the plan's: {odd} differs")
    sums = {name: value for name, value in outcome.sums.items() if name != WEIGHTS_LIST}
    if fault := damage(folder, sums):
        raise RecordError(f"{fault} (its sum is in {path}): remove {folder}, and the run is trained again")
    return outcome


REMEDY = {
    "files": "remove one or the other, and they are trained again",
    "problems": "remove the completions of one or the other, and they are generated again",
}


Input = tuple[tuple[str, str, str], str, str]
"""What a run read: (a key of `REMEDY`, kind, its name), its SHA-256, the run. Of one name, all runs read the same."""


def trained_on(run: Run, outcome: Outcome, plan: Plan) -> Iterator[Input]:
    """The files that a training read; to select a checkpoint, the first benchmark of its setting."""
    roles = plan.benchmarks[run.setting]
    first = next(name for name in roles if roles[name] == "in")
    read = ("data", run.dataset, outcome.data), ("data", first, outcome.test), ("model", run.model, outcome.model)
    for kind, name, used in read:
        if used:
            yield ("files", kind, name), used.sha256, run.name


def evaluated_on(run: Run, benchmark: str, drawn: dict[Decoding, Problems], path: Path) -> Iterator[Input]:
    """The problems of completions. The text of a prompt has the chat template of the model."""
    template = run.training.get("chat_template_kwargs")
    names = {
        "golds": benchmark,
        "prompts": f"{benchmark} in {run.setting}" + (f" with {template}" if template else ""),
    }
    for kind, total in asked(drawn, str(path)).items():
        yield ("problems", kind, names[kind]), total, run.name


def check_inputs(inputs: Iterable[Input]) -> None:
    """Refuse runs that read different things of one name.

    Raises:
        RecordError: naming up to three runs of the rarer kind, and one of the other.
    """
    readers = defaultdict(lambda: defaultdict(dict))
    for key, total, run in inputs:
        readers[key][total][run] = None  # each run once
    for (what, kind, name), sums in readers.items():
        if len(sums) > 1:
            few, *_, many = sorted(map(list, sums.values()), key=len)
            read = f"other files of {kind}" if what == "files" else f"other {kind} of"
            raise RecordError(
                f"{', '.join(few[:3])} ({len(few)} in all) had {read} {name!r} than {many[0]} "
                f"({len(many)} in all): {REMEDY[what]}"
            )


@dataclass
class Results:
    """What a study's files amount to: the rows of scores.jsonl and curves.csv, and what was not there."""

    scores: list[Score] = field(default_factory=list)
    curves: list[CurvePoint] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)

    def update(self, other: "Results") -> None:
        """Add those of another run."""
        self.scores += other.scores
        self.curves += other.curves
        self.missing += other.missing
        self.inputs += other.inputs

    @contextmanager
    def listing(self, unfinished: bool) -> Iterator[None]:
        """Of an unfinished study, list what is missing or does not hold what it should."""
        try:
            yield
        except RecordError as error:
            if not unfinished:
                raise
            self.missing.append(str(error))


def collect(plan: Plan, folder: Path, unfinished: bool = False) -> Results:
    """Every score and curve of the plan's runs; of an unfinished study, of those that are there.

    A run whose training is wrong or unfinished has none.

    Raises:
        RecordError: for runs of different inputs; for a file that is missing or does not hold what it should,
            which is listed of an unfinished study.
    """
    results, one = Results(), partial(of_one_run, plan, folder, unfinished)
    if (processes := _processes(len(plan.runs))) > 1:
        # Not a multiprocessing.Pool, which waits for ever for a process that was killed
        with ProcessPoolExecutor(processes, mp_context=FORK) as pool:
            for found in pool.map(one, plan.runs, chunksize=4):
                results.update(found)
    else:
        for found in map(one, plan.runs):
            results.update(found)
    check_inputs(results.inputs)
    return results


def _processes(runs: int) -> int:
    """How many processes read the files of so many runs; one where a few are read as fast as processes start."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return min(available, MOST_PROCESSES, runs // LEAST_RUNS)


def of_one_run(plan: Plan, folder: Path, unfinished: bool, run: Run) -> Results:
    """The scores and the curve of one run; as in `collect`."""
    results, files = Results(), ResultFiles(folder)
    with results.listing(unfinished):
        is_trained = run.method != UNTRAINED
        outcome = finished_outcome(files.run(run.name), run) if is_trained else None
        if outcome:
            results.inputs += trained_on(run, outcome, plan)
        for benchmark, role in measured_on(plan, run):
            with results.listing(unfinished):
                if role == "train":
                    scores, points = of_training(run, outcome, files.run(run.name))
                    results.curves += points
                else:
                    # Of a whole study Snakemake has made them anew where the weights have changed
                    since = outcome.started if outcome and unfinished else 0.0
                    scores = of_benchmark(run, benchmark, role, plan.grading, files, since, results.inputs)
                results.scores += scores
    return results


def of_benchmark(
    run: Run, benchmark: str, role: Role, grading: list[str], files: ResultFiles, since: float, inputs: list[Input]
) -> list[Score]:
    """The scores of a run on a benchmark under each protocol of grading, or its sign-flip rates there.

    Args:
        since: an older file is not of this training; in seconds since the epoch.
        inputs: what the runs read, to which the problems are added.

    Raises:
        RecordError: for a file that is wrong or older.
    """
    is_flips = role == "flips"
    path = files.flips(run.name, benchmark) if is_flips else files.grades(run.name, benchmark)
    if path.exists() and path.stat().st_mtime < since:
        raise RecordError(f"{path}: older than the training that it should be of")
    if is_flips:
        check_seal(path)
        rows, graded = read_jsonl(path, Measure), files.rollout_grades(run.name, benchmark)
    else:
        drawn, graded = read_grades(path, grading), path
        inputs += evaluated_on(run, benchmark, drawn, path)
        rows = [row for protocol in grading for row in measures(drawn, protocol)]
    scores = []
    for row in rows:
        numbers = {**vars(row), "value": fmean(row.values), "n": len(row.values)}
        decoding = decoding_of(row.measure)
        scores.append(Score(**of_run(run), benchmark=benchmark, role=role, decoding=decoding, **numbers))
    if graded.is_file():
        scores += [
            Score(**of_run(run), benchmark=benchmark, role=role, measure=name, value=float(tokens), n=1)
            for name, tokens in token_limits(graded).items()
        ]
    return scores


def of_training(run: Run, outcome: Outcome, folder: Path) -> tuple[list[Score], list[CurvePoint]]:
    """The measures of a training, with n steps, and its curve."""
    drawn, first = rollouts(folder / GROUPS)
    points = curve(run, [metrics for _, metrics in iter_json_lines(folder / METRICS)], drawn)
    found = training_measures(points, outcome.seconds, run.training.get("max_grad_norm", 1.0))
    found[GPUS] = outcome.gpus
    if planned_extra(run) is None:  # those of a user-defined estimator, which is code
        found[EXTRA_ROLLOUTS] = first - run.num_generations
    key = {**of_run(run), "benchmark": "train", "role": "train", "n": len(points)}
    return [Score(**key, measure=name, value=float(value)) for name, value in found.items()], points


def rollouts(path: Path) -> tuple[dict[int, int], int]:
    """The rollouts that were drawn for each step of a training, over all processes, and those of its first group.

    Raises:
        RecordError: for a line that is no group, or without any.
    """
    drawn, sizes = Counter(), []
    for where, row in iter_json_lines(path):
        if not {"step", "rewards"} <= row.keys():
            raise RecordError(f"{where}: a group has a step and rewards")
        sizes.append(len(row["rewards"]))
        drawn[row["step"]] += sizes[-1]
    if not sizes:
        raise RecordError(f"{path}: holds no groups")
    return drawn, sizes[0]


def main(arguments: list[str] | None = None) -> None:
    """Collect a study's results into scores.jsonl and curves.csv."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/STUDY: plan.json, runs, grades, ...")
    parser.add_argument("--partial", action="store_true", help="take what is there, and name what is not")
    options = parser.parse_args(arguments)
    files = ResultFiles(options.results)
    with command_line.errors(RecordError):
        results = collect(read_plan(files.plan), files.folder, options.partial)
        write_scores(files.scores, results.scores)
        write_table(files.curves, CurvePoint, results.curves)
    for line in results.missing:
        print(f"missing: {line}")
    print(f"{len(results.scores)} scores and {len(results.curves)} steps")


if __name__ == "__main__":
    main()
