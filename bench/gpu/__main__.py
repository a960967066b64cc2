"""`python -m bench.gpu` (`make gpu-check`): everything about this machine's GPU that we want to know, in one CSV.

Needs no network and at most 10 minutes. What is not installed, or what no time is left for, is `skipped` with its name.
Without a GPU the same runs on the CPU at a tiny shape, which shows only that it runs. The exit code is 1 if something
failed.
"""

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from bench.gpu.checks import Row, doctor, estimators, laws, machine


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """All parts, the shortest first."""
    end = time.monotonic() + 60 * options.minutes

    def left() -> float:
        return max(end - time.monotonic(), 0.0)

    yield from machine()
    yield from doctor(left())
    yield from estimators(options.device)
    yield from laws(options.device, options.laws, left())
    try:
        from bench.gpu.steps import steps
    except ImportError as error:
        yield Row("steps", status="skipped", note=str(error))
    else:
        yield from steps(options.device, left)


def main() -> None:
    """Check this machine's GPU; every row is written and printed as it is found."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--csv", type=Path, default=Path("reports/gpu-check.csv"))
    parser.add_argument("--minutes", type=float, default=9.0, help="after which nothing more is started (%(default)s)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--laws", nargs="+", help="tests to run in place of the usual ones")
    options = parser.parse_args()
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    failed = 0
    with options.csv.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for row in rows(options):
            writer.writerow(row)
            file.flush()
            print(row, flush=True)
            failed += row.status == "failed"
    print(f"\n{options.csv}: {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
