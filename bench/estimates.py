"""How good the estimate of a study's end was: `python bench/estimates.py config/mini.yaml`, in the folder of the study.

A finished study is gone through again: at each moment the estimate is made from the jobs that had ended by then, as
`mcgrpo progress` makes it. Prints, for each tenth of the time, the estimated over the true time left. The end is that
of the last job before the report.
"""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from mcgrpo import command_line
from mcgrpo.commands.progress.jobs import Job, jobs, seconds
from mcgrpo.commands.progress.left import left
from mcgrpo.commands.progress.state import Status
from mcgrpo.study import read as study_file

LIMIT = 0.25
"""From a third of the way on, an estimate is to be wrong by no more than this share of the time left."""


def spans(every: list[Job]) -> dict[Job, tuple[float, float]]:
    """Start and end of each job, in seconds since the epoch, by its benchmark file."""
    found = {}
    for job in every:
        if (took := seconds(job.timed)) is not None:
            end = job.timed.stat().st_mtime
            found[job] = end - took, end
    return found


def at(moment: float, ran: Mapping[Job, tuple[float, float]]) -> dict[Job, Status]:
    """The status of each job at a moment."""
    found = {}
    for job, (start, end) in ran.items():
        if end <= moment:
            found[job] = Status("done", end, end, end - start)
        else:
            found[job] = Status("running", start=start) if start <= moment else Status("waiting")
    return found


def main() -> None:
    """Print the table; fails if an estimate of the last two thirds is wrong by more than `LIMIT`."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    options = parser.parse_args()
    ran = spans([*jobs(study_file.read(study_file.resolve(options)))])
    if not ran:
        sys.exit("no job of this study has ended in this folder")
    begin, finish = min(start for start, _ in ran.values()), max(end for _, end in ran.values())
    print(f"{len(ran)} jobs, {finish - begin:.0f} s, until {time.ctime(finish)}, in {Path.cwd().name}")
    print("| done | left, s | estimated, s | estimated / left | jobs of unknown time |\n|---|---|---|---|---|")
    wrong = 0.0
    for tenth in range(1, 10):
        moment = begin + (finish - begin) * tenth / 10
        rest, true = left(at(moment, ran), moment), finish - moment
        ratio = (rest.seconds or 0.0) / true
        print(f"| {tenth}0 % | {true:.0f} | {rest.seconds or 0.0:.0f} | {ratio:.2f} | {rest.unknown} |")
        if tenth > 3:
            wrong = max(wrong, abs(ratio - 1))
    print(f"from a third on wrong by at most {wrong:.0%} of the time left")
    if wrong > LIMIT:
        sys.exit(1)


if __name__ == "__main__":
    main()
