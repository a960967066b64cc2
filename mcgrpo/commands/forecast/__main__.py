"""What a study will take: `mcgrpo plan [STUDY.yaml ...]`, a row for each experiment.

A training that several experiments share counts in the first. Finished trainings are not counted again (if code has
changed, Snakemake may rerun them: see `snakemake -n`). Times are of training only: those measured under results/, or
the paper's for its own settings.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import SEPARATING_LINE, tabulate

from mcgrpo import command_line
from mcgrpo.commands.forecast import effects, space
from mcgrpo.commands.forecast.batches import batches
from mcgrpo.commands.forecast.sizes import Sizes, sizes
from mcgrpo.commands.forecast.times import Time, finished, times, work
from mcgrpo.files import RecordError
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.fit import job_gpus
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, expand, runs

UNKNOWN = "unknown"
SOURCES = {
    "measured": "mean time of finished trainings with the same setting, G, rollouts and batch",
    "published": "the paper's time, on two B200, for the same setting, G, rollouts and batch",
    "scaled": "the paper's GPU-hours, on two B200, for the same batches; not measured on this number of GPUs",
    UNKNOWN: "no time of such a training is known; it is not part of the hours",
}


class Forecast(NamedTuple):
    """What a run that is not finished will take; what is unknown is None.

    Args:
        disk: bytes that it leaves.
        scratch: bytes that its training needs while it runs.
    """

    trained: bool
    steps: int | None
    time: Time | None
    disk: int | None
    scratch: int | None


def forecasts(config: Config, sizes: Sizes) -> dict[str, Forecast]:
    """The study's unfinished runs, by name."""
    entries = expand(config)
    trainings = [entry.run for entry in entries.values() if entry.run.method != UNTRAINED]
    known, done = times(config, trainings), {run.name for run, _ in finished(config, trainings)}
    return {name: _forecast(config, entry, sizes, known) for name, entry in entries.items() if name not in done}


def _forecast(config: Config, entry: Any, sizes: Sizes, known: dict[str, Time]) -> Forecast:
    run = entry.run
    if run.method == UNTRAINED:
        return Forecast(False, 0, None, space.kept(config, entry, 0, sizes), 0)
    steps = batches(run, config.get("gpus", 0), sizes.rows[run.dataset].get("train")).steps
    disk, scratch = space.kept(config, entry, steps, sizes), space.while_training(run, sizes)
    return Forecast(True, steps, known.get(work(config, run)), disk, scratch)


def rows(config: Config, left: dict[str, Forecast]) -> list[dict[str, Any]]:
    """A row for each experiment, and the total; `left` are the study's unfinished runs."""
    by_experiment, seen = [], set()
    for name, experiment in config["experiments"].items():
        runs = expand({**config, "experiments": {name: experiment}})
        trained = {run for run, entry in runs.items() if entry.run.method != UNTRAINED}
        new = runs.keys() - seen
        counts = {"trainings": len(trained), "shared": len(trained - new), "finished": len(new - left.keys())}
        by_experiment.append({"experiment": name, **counts, **_row(config, [left[run] for run in new & left.keys()])})
        seen |= runs.keys()
    trainings = sum(row["trainings"] - row["shared"] for row in by_experiment)
    counts = {"trainings": trainings, "shared": 0, "finished": sum(row["finished"] for row in by_experiment)}
    return [*by_experiment, {"experiment": "total", **counts, **_row(config, list(left.values()))}]


def _row(config: Config, left: Sequence[Forecast]) -> dict[str, Any]:
    trained = [each for each in left if each.trained]
    sources = Counter(each.time.source if each.time else UNKNOWN for each in trained)
    return {
        "to_train": len(trained),
        "steps": add(each.steps for each in left),
        "device_hours": sum(each.time.seconds for each in trained if each.time) * max(config.get("gpus", 0), 1) / 3600,
        "times": {source: sources[source] for source in SOURCES if sources[source]},
        "disk_bytes": add(each.disk for each in left),
    }


def add(values: Iterable[int | None]) -> int | None:
    """The sum, unknown if one of the values is."""
    values = list(values)
    return None if None in values else sum(values)


def listing(rows: Sequence[dict[str, Any]], gpus: int) -> str:
    """The table for people."""
    headers = ["experiment", "trainings", "shared", "finished", "to train", "steps"]
    headers += ["GPU-hours" if gpus else "core-hours", "disk, GB", "times"]
    lines = [_cells(row) for row in rows]
    lines.insert(-1, SEPARATING_LINE)
    return tabulate(lines, headers, "simple", disable_numparse=True, colalign=("left", *["right"] * 7, "left"))


def _cells(row: dict[str, Any]) -> list[str]:
    known = row["to_train"] > row["times"].get(UNKNOWN, 0) or not row["to_train"]
    counts = [f"{row[key]:,}" for key in ("trainings", "shared", "finished", "to_train")]
    steps = UNKNOWN if row["steps"] is None else f"{row['steps']:,}"
    hours = f"{row['device_hours']:,.1f}" if known else UNKNOWN
    times = ", ".join(f"{count} {source}" for source, count in row["times"].items())
    return [row["experiment"], *counts, steps, hours, gigabytes(row["disk_bytes"]), times]


def gigabytes(count: float | None) -> str:
    """Bytes in GB, if known."""
    return UNKNOWN if count is None else f"{count / 1e9:,.2f}"


def notes(known: Sizes, left: dict[str, Forecast], at_once: int) -> Iterator[str]:
    """The lines below the table; `at_once` trainings run at the same time, 0 if that is not known."""
    trained = [each for each in left.values() if each.trained]
    sources = {each.time.source if each.time else UNKNOWN for each in trained}
    yield from (f"{source}: {what}" for source, what in SOURCES.items() if source in sources)
    yield f"Evaluation is not included: of these runs and of {len(left) - len(trained)} untrained model(s)."
    if known.hub:
        yield f"To download: {gigabytes(space.to_download(known))} GB ({len(known.hub)} models and data sets)."
    if silent := {name: answer.detail for (_, name), answer in known.hub.items() if answer.problem}:
        yield f"Of unknown size, as the hub did not answer: {', '.join(silent)} ({next(iter(silent.values()))})"
    if at_once:
        seconds = [each.time.seconds for each in trained if each.time]
        hours = f"{max(sum(seconds) / at_once, *seconds) / 3600:,.1f} hours" if seconds else UNKNOWN
        missing = f", without {len(trained) - len(seconds)} of unknown time" if 0 < len(seconds) < len(trained) else ""
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
    percent = partial(command_line.number, least=0, most=100)
    spread, points = effects.Spread(), "standard deviation of a gain between"
    for option, default, what in (
        ("--seed-sd", spread.seeds, f"{points} seeds, in points"),
        ("--problem-sd", spread.problems, f"{points} problems, in points"),
        ("--disagreement", spread.disagreement, "percent of answers in which two methods differ"),
    ):
        parser.add_argument(
            option, type=percent, default=100 * default, metavar="X", help=f"{what} (default: %(default)g)"
        )
    parser.add_argument("--spread", type=Path, metavar="FOLDER", help="results/STUDY whose gains give --seed-sd")
    parser.add_argument(
        "--budget",
        type=partial(command_line.number, least=0),
        metavar="HOURS",
        help="choose the part of the study that decides most claims",
    )
    parser.add_argument("--claims", nargs="+", default=[], metavar="ID", help="with --budget: decide these only")
    parser.add_argument("--output", type=Path, metavar="FILE", help="with --budget: write the overlay study file")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, the total last")
    return parser


def _spread(options: argparse.Namespace) -> effects.Spread:
    assumed = effects.Spread(*(getattr(options, key) / 100 for key in ("seed_sd", "problem_sd", "disagreement")))
    if options.spread is None:
        return assumed
    from mcgrpo.commands.forecast.power import measured_spread  # pandas takes a second to import

    try:
        return measured_spread(options.spread, assumed)[0]
    except (RecordError, OSError) as error:
        raise StudyError(f"--spread: {error}") from None


def _plan_within(config: Config, known: Sizes, spread: effects.Spread, options: argparse.Namespace) -> None:
    from mcgrpo.commands.forecast import within  # likewise

    selection = within.within(config, known, spread, options.budget, options.claims)
    print(*within.listing(config, selection, spread), sep="\n")
    if options.output and not selection.choice.seeds:
        raise StudyError(f"--budget {options.budget:g}: decides no claim; {options.output} is not written")
    if options.output:
        within.write(options.output, config, selection, spread, options.studies)


def main() -> None:
    """Print what a study will take: trainings, optimizer steps, hours and disk, for each experiment."""
    options = _parser().parse_args()
    options.output, options.spread = (path and path.absolute() for path in (options.output, options.spread))
    with command_line.errors(StudyError):
        config = study_file.read(study_file.resolve(options))
        gpus = config.get("gpus", 0)
        known = sizes(config)
        spread = _spread(options)
        if options.budget is not None:
            _plan_within(config, known, spread, options)
            return
        left = forecasts(config, known)
        below = list(notes(known, left, _at_once(config.get("nodes", 1) * job_gpus(config, runs(config)), options)))
    table = rows(config, left)
    if options.json:
        print(json.dumps(table, indent=2))
        return
    print(listing(table, gpus), "", *below, *effects.listing(effects.effects(config, known, spread), spread), sep="\n")


if __name__ == "__main__":
    main()
