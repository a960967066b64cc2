"""What a study will take: `mcgrpo plan [STUDY.yaml ...]`, before anything starts.

A row for each experiment. A run that several experiments ask for is counted in the first; one that has finished under
the present study is not counted again (changed code may make Snakemake train it anew: `snakemake -n` knows). Times are
those of trainings: what is measured under results/, or what the paper prints for its own settings (on two B200); both
also stand for trainings of the same work with another loss, reward or seed ("like"), and nothing else does.
Evaluation and grading come on top.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from typing import Any

from tabulate import SEPARATING_LINE, tabulate

from mcgrpo.commands.forecast import effects, space
from mcgrpo.commands.forecast.sizes import Sizes, sizes
from mcgrpo.commands.forecast.table import Row, rows, total, wall_seconds
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.plan import Config

UNKNOWN = "unknown"
EXPLAINED = {
    "measured": "under results, of the same setting, method, G and variant",
    "published": "the paper's, for its own settings; wall-clock, on two B200",
    "like": "of the same setting, G, rollouts and batch, with another method or variant",
    UNKNOWN: "nothing like it has been measured here or published; not part of the hours",
}


def record(row: Row, devices: int) -> dict[str, Any]:
    """A row for machines; `device_hours` are those of the trainings whose time is known, on `devices` each."""
    return {
        "experiment": row.experiment,
        "trainings": row.trainings,
        "shared": row.shared,
        "finished": row.finished,
        "to_train": len(row.to_train),
        "steps": row.steps,
        "device_hours": row.seconds * devices / 3600,
        "times": row.sources,
        "disk_bytes": row.disk,
    }


def listing(found: Sequence[Row], gpus: int) -> str:
    """The table for people."""
    headers = ["experiment", "trainings", "shared", "finished", "to train", "steps"]
    headers += ["GPU-hours" if gpus else "core-hours", "disk, GB", "times from"]
    lines = [_cells(record(row, max(gpus, 1))) for row in (*found, total(found))]
    aligned = ("left", *["right"] * 7, "left")
    return tabulate(
        [*lines[:-1], SEPARATING_LINE, lines[-1]], headers, "simple", disable_numparse=True, colalign=aligned
    )


def _cells(row: dict[str, Any]) -> list[str]:
    known = row["to_train"] - row["times"].get(UNKNOWN, 0)
    hours = f"{row['device_hours']:,.1f}" if known or not row["to_train"] else UNKNOWN
    counts = [f"{row[key]:,}" for key in ("trainings", "shared", "finished", "to_train")]
    sources = ", ".join(f"{count} {source}" for source, count in row["times"].items())
    steps = UNKNOWN if row["steps"] is None else f"{row['steps']:,}"
    return [row["experiment"], *counts, steps, hours, _gigabytes(row["disk_bytes"]), sources]


def _gigabytes(count: float | None) -> str:
    return UNKNOWN if count is None else f"{count / 1e9:,.2f}"


def notes(config: Config, known: Sizes, found: Sequence[Row], options: argparse.Namespace) -> list[str]:
    """What is to be said below the table."""
    whole = total(found)
    lines = [f"{source}: {why}" for source, why in EXPLAINED.items() if any(source in each for each in whole.sources)]
    untrained = len(whole.jobs) - len(whole.to_train)
    lines.append(f"Evaluation comes on top: of these runs and of {untrained} untrained model(s).")
    if known.hub:
        lines.append(f"To download: {_gigabytes(space.to_download(known))} GB, {len(known.hub)} from the hub.")
    if silent := {name: answer.detail for (_, name), answer in known.hub.items() if answer.problem}:
        lines.append(f"Unknown sizes: the hub did not say for {', '.join(silent)} ({next(iter(silent.values()))}).")
    if at_once := _at_once(config.get("gpus", 0), options):
        lines.append(_wall_clock(whole, at_once))
    return lines


def _wall_clock(whole: Row, at_once: int) -> str:
    short = whole.sources.get(UNKNOWN, 0)
    if short and short == len(whole.to_train):
        return f"Wall clock of the trainings, {at_once} side by side: unknown."
    left_out = f", without the {short} of unknown time" if short else ""
    hours = wall_seconds(whole, at_once) / 3600
    return f"Wall clock of the trainings, {at_once} side by side: {hours:,.1f} hours{left_out}."


def _at_once(gpus: int, options: argparse.Namespace) -> int:
    """Trainings that run side by side; 0 where nobody has said on what.

    Raises:
        StudyError: where there are fewer GPUs than one training takes.
    """
    if not gpus:
        return options.cores or 0
    if options.gpus is not None and options.gpus < gpus:
        raise StudyError(f"--gpus {options.gpus}: one training takes {gpus}")
    return (options.gpus or 0) // gpus


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def main() -> None:
    """Say what a study will take: runs, optimizer steps, hours and disk, for each experiment."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--gpus", type=_positive, help="of the machine or cluster: says how long the trainings last")
    parser.add_argument("--cores", type=_positive, help="the same for a study that trains on the CPU")
    effects.add_arguments(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON: a list of rows, the total last")
    output.add_argument("--csv", action="store_true", help="print the rows as CSV")
    options = parser.parse_args()
    try:
        config = study_file.read(study_file.resolve(options))
        known = sizes(config)
        found = rows(config, known)
        below = notes(config, known, found, options)
        spread = effects.spread_of(options)
        shown = effects.listing(effects.effects(config, known, spread), spread)
    except StudyError as error:
        sys.exit(f"error: {error}")
    records = [record(row, max(config.get("gpus", 0), 1)) for row in (*found, total(found))]
    if options.json:
        print(json.dumps(records, indent=2))
    elif options.csv:
        _write_csv(records)
    else:
        print("\n".join([listing(found, config.get("gpus", 0)), "", *below, *shown]))


def _write_csv(records: Sequence[dict[str, Any]]) -> None:
    writer = csv.DictWriter(sys.stdout, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(each | {"times": json.dumps(each["times"])} for each in records)


if __name__ == "__main__":
    main()
