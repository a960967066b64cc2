"""What a study will take: `mcgrpo plan [STUDY.yaml ...]`, a row for each experiment.

A training that several experiments share counts in the first. Finished trainings are not counted again (if code has
changed, Snakemake may rerun them: see `snakemake -n`). Times are of training only: those measured under results/, or
the paper's for its own settings.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tabulate import SEPARATING_LINE, tabulate

from mcgrpo import command_line
from mcgrpo.commands.plan import effects
from mcgrpo.commands.plan.times import Time, finished, times, work
from mcgrpo.files import RecordError
from mcgrpo.records import Run
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.fit import job_gpus
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, expand, runs
from mcgrpo.study.rows import rows_of
from mcgrpo.study.schedule import schedule

UNKNOWN = "unknown"
SOURCES = {
    "measured": "mean time of finished trainings with the same setting, G, rollouts and batch",
    "published": "the paper's time, on two B200, for the same setting, G, rollouts and batch",
    "scaled": "the paper's GPU-hours, on two B200, for the same batches; not measured on this number of GPUs",
    UNKNOWN: "no time of such a training is known; it is not part of the hours",
}


class Forecast(NamedTuple):
    """The optimizer steps and the time of a training that is not finished; None if unknown."""

    steps: int | None
    time: Time | None


def forecasts(config: Config) -> dict[str, Forecast]:
    """The study's unfinished trainings, by name."""
    trainings = [run for run in runs(config) if run.method != UNTRAINED]
    known, done = times(config, trainings), {run.name for run, _ in finished(config, trainings)}
    rows = {name: rows_of(config, name).get("train") for name in {run.dataset for run in trainings}}
    processes = max(config.get("gpus", 0), 1)
    return {
        run.name: Forecast(steps(run, processes, rows[run.dataset]), known.get(work(config, run)))
        for run in trainings
        if run.name not in done
    }


def steps(run: Run, processes: int, rows: int | None) -> int | None:
    """Optimizer steps of a training; None if they depend on an unknown number of `rows` of training data.

    With fewer prompts than one generation batch there are no steps, even with `max_steps`.
    """
    if rows is None:
        return run.training.get("max_steps")
    try:
        return schedule(run, processes, rows).steps
    except RecordError:
        return 0


def rows(config: Config, left: dict[str, Forecast]) -> list[dict[str, Any]]:
    """A row for each experiment, and the total; `left` are the study's unfinished trainings."""
    by_experiment, seen = [], set()
    for name, experiment in config["experiments"].items():
        planned = expand({**config, "experiments": {name: experiment}})
        trained = {run for run, entry in planned.items() if entry.run.method != UNTRAINED}
        new = trained - seen
        counts = {"trainings": len(trained), "shared": len(trained & seen), "finished": len(new - left.keys())}
        by_experiment.append({"experiment": name, **counts, **_row(config, [left[run] for run in new & left.keys()])})
        seen |= trained
    counts = {"trainings": len(seen), "shared": 0, "finished": len(seen - left.keys())}
    return [*by_experiment, {"experiment": "total", **counts, **_row(config, list(left.values()))}]


def _row(config: Config, left: Sequence[Forecast]) -> dict[str, Any]:
    sources = Counter(each.time.source if each.time else UNKNOWN for each in left)
    counts = [each.steps for each in left]
    return {
        "to_train": len(left),
        "steps": None if None in counts else sum(counts),
        "device_hours": sum(each.time.seconds for each in left if each.time) * max(config.get("gpus", 0), 1) / 3600,
        "times": {source: sources[source] for source in SOURCES if sources[source]},
    }


def listing(rows: Sequence[dict[str, Any]], gpus: int) -> str:
    """The table for people."""
    headers = ["experiment", "trainings", "shared", "finished", "to train", "steps"]
    headers += ["GPU-hours" if gpus else "core-hours", "times"]
    lines = [_cells(row) for row in rows]
    lines.insert(-1, SEPARATING_LINE)
    return tabulate(lines, headers, "simple", disable_numparse=True, colalign=("left", *["right"] * 6, "left"))


def _cells(row: dict[str, Any]) -> list[str]:
    known = row["to_train"] > row["times"].get(UNKNOWN, 0) or not row["to_train"]
    counts = [f"{row[key]:,}" for key in ("trainings", "shared", "finished", "to_train")]
    steps = UNKNOWN if row["steps"] is None else f"{row['steps']:,}"
    hours = f"{row['device_hours']:,.1f}" if known else UNKNOWN
    times = ", ".join(f"{count} {source}" for source, count in row["times"].items())
    return [row["experiment"], *counts, steps, hours, times]


def notes(left: dict[str, Forecast], at_once: int) -> Iterator[str]:
    """The lines below the table; `at_once` trainings run at the same time, 0 if that is not known."""
    sources = {each.time.source if each.time else UNKNOWN for each in left.values()}
    yield from (f"{source}: {what}" for source, what in SOURCES.items() if source in sources)
    yield "Evaluation is not included."
    if at_once:
        seconds = [each.time.seconds for each in left.values() if each.time]
        hours = f"{max(sum(seconds) / at_once, *seconds) / 3600:,.1f} hours" if seconds else UNKNOWN
        missing = f", without {len(left) - len(seconds)} of unknown time" if 0 < len(seconds) < len(left) else ""
        yield f"Wall clock of the trainings, {at_once} at a time: {hours}{missing}."


def _at_once(gpus: int, options: argparse.Namespace) -> int:
    if not gpus:
        return options.cores or 0
    if options.gpus is not None and options.gpus < gpus:
        raise StudyError(f"--gpus {options.gpus}: one training takes {gpus}")
    return (options.gpus or 0) // gpus


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--gpus", type=command_line.whole, help="GPUs of the machine or cluster, for the wall clock")
    parser.add_argument(
        "--cores", type=command_line.whole, help="cores, for the wall clock of a study that trains on the CPU"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, the total last")
    return parser


def main() -> None:
    """Print what a study will take: trainings, optimizer steps and hours of each experiment, and detectable gains."""
    options = _parser().parse_args()
    with command_line.errors(StudyError):
        config = study_file.read(options.studies)
        gpus = config.get("nodes", 1) * job_gpus(config, runs(config))
        left = forecasts(config)
        below = list(notes(left, _at_once(gpus, options)))
    table = rows(config, left)
    if options.json:
        print(json.dumps(table, indent=2))
        return
    detectable = effects.listing(effects.effects(config))
    print(listing(table, config.get("gpus", 0)), "", *below, *detectable, sep="\n")


if __name__ == "__main__":
    main()
