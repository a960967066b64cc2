"""What a study will take: `mcgrpo plan [STUDY.yaml ...]`, a row for each experiment.

A training that several experiments share counts in the first. Finished trainings are not counted again (if code has
changed, Snakemake may rerun them: see `snakemake -n`). Times are of training only: those measured under results/, the
paper's for its own settings, or about those of toy models.
"""

import argparse
import os
from collections.abc import Iterator
from typing import Any

import pandas as pd
from tabulate import SEPARATING_LINE, tabulate

from mcgrpo import command_line
from mcgrpo.analyse.claims import ClaimError, check_questions
from mcgrpo.commands import contexts, memory
from mcgrpo.commands.plan import effects
from mcgrpo.commands.plan.times import TOY_MACHINE, TOY_OTHERS, finished_trainings, times, toy_time, work
from mcgrpo.files import RecordError
from mcgrpo.records import Run
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, runs
from mcgrpo.study.rows import rows_of
from mcgrpo.study.schedule import schedule

UNKNOWN = "unknown"
SOURCES = {
    "measured": "mean time of finished trainings with the same setting, G, rollouts and batch",
    "published": "the paper's GPU-hours, on two B200, for the same setting, G, rollouts and batch",
    "toy": f"about what trainings of toy models took on {TOY_MACHINE}",
    UNKNOWN: "no time of such a training is known; it is not part of the hours",
}


def trainings(config: Config) -> pd.DataFrame:
    """The trainings of each experiment.

    Returns:
        A row for each, with its `experiment`, `run`, `shared` (with an experiment before), `finished`, `steps`,
        `seconds` (NaN where they are not known) and the `source` of these.
    """
    everything = [run for run in runs(config) if run.method != UNTRAINED]
    data = {name: rows_of(config, name).get("train") for name in {run.dataset for run in everything}}
    done = {run.name: (run, seconds) for run, seconds in finished_trainings(config, everything)}
    known = times(config, done)
    rows = []
    for name, experiment in config["experiments"].items():
        for run in runs({**config, "experiments": {name: experiment}}):
            if run.method != UNTRAINED:
                count = steps(run, max(config.get("gpus", 0), 1), data[run.dataset])
                seconds, source = known.get(work(config, run)) or toy_time(config, run, count) or (None, UNKNOWN)
                rows.append((name, run.name, run.name in done, count, seconds, source))
    frame = pd.DataFrame(rows, columns=["experiment", "run", "finished", "steps", "seconds", "source"])
    return frame.assign(shared=frame.run.duplicated()).astype({"steps": float, "seconds": float})


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


def to_train(frame: pd.DataFrame) -> pd.DataFrame:
    """The trainings of `trainings` that are not finished, each once."""
    return frame[~frame.shared & ~frame.finished]


def listing(config: Config, frame: pd.DataFrame) -> str:
    """A row for each experiment, and the total."""
    gpus = config.get("gpus", 0)
    headers = ["experiment", "trainings", "shared", "finished", "to train", "steps"]
    headers += ["GPU-hours" if gpus else "core-minutes", "times"]
    unit = 3600 / gpus if gpus else 60
    rows = [_row(name, frame[frame.experiment == name], unit) for name in config["experiments"]]
    rows += [SEPARATING_LINE, _row("total", frame[~frame.shared], unit)]
    return tabulate(rows, headers, "simple", disable_numparse=True, colalign=("left", *["right"] * 6, "left"))


def _row(name: str, own: pd.DataFrame, unit: float) -> list[str]:
    left = to_train(own)
    counts = [len(own), own.shared.sum(), (own.finished & ~own.shared).sum(), len(left)]
    sums = [left.steps.sum(skipna=False), left.seconds.sum(min_count=min(len(left), 1)) / unit]
    shown = [UNKNOWN if pd.isna(each) else f"{each:,.{digits}f}" for each, digits in zip(sums, (0, 1), strict=True)]
    sources = [f"{count} {source}" for source in SOURCES if (count := (left.source == source).sum())]
    return [name, *(f"{each:,}" for each in counts), *shown, ", ".join(sources)]


def notes(left: pd.DataFrame, at_once: int) -> Iterator[str]:
    """The lines below the table; `at_once` trainings run at the same time, 0 if that is not known."""
    yield from (f"{source}: {what}" for source, what in SOURCES.items() if (left.source == source).any())
    known = left.seconds.dropna()
    if not at_once or known.empty:
        return
    seconds = max(known.sum() / at_once, known.max())
    missing = f", without {len(left) - len(known)} of unknown time" if len(known) < len(left) else ""
    yield f"Wall clock of the trainings, {at_once} at a time: {clock(seconds)}{missing}."
    if (left.source == "toy").any():
        yield f"With evaluation and report: about {clock(seconds * (1 + TOY_OTHERS))}."


def clock(seconds: float) -> str:
    """A time in minutes, or from two hours on in hours."""
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.1f} hours"


def _at_once(gpus: int, options: argparse.Namespace) -> int:
    if not gpus:
        return options.cores
    if options.gpus is not None and options.gpus < gpus:
        raise StudyError(f"--gpus {options.gpus}: one training takes {gpus}")
    return (options.gpus or 0) // gpus


def main() -> None:
    """Print what a study will take: trainings, optimizer steps and hours of each experiment, and detectable gains."""
    parser, here = command_line.parser(main.__doc__), len(os.sched_getaffinity(0))
    study_file.add_arguments(parser)
    number: Any = {"type": command_line.whole, "metavar": "N"}
    parser.add_argument("--gpus", **number, help="GPUs of the machine or cluster, for the wall clock")
    parser.add_argument("--cores", **number, default=here, help="for a study that trains on CPUs (default: all here)")
    options = parser.parse_args()
    with command_line.errors(StudyError, ClaimError):
        config = study_file.read(options.studies)
        check_questions(config)
        gpus = config.get("gpus", 0)
        frame = trainings(config)
        below = [*notes(to_train(frame), _at_once(gpus, options)), *contexts.notes(config)]
        below += [*memory.listing(config), *effects.listing(config)]
    print(listing(config, frame), "", *below, sep="\n")


if __name__ == "__main__":
    main()
