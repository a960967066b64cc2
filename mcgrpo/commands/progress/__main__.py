"""How far a study is: `mcgrpo progress [STUDY.yaml ...]`, read from its files alone, wherever its jobs run.

A training counts as done when it has finished under the present hyper-parameters (changed code may make Snakemake train
it anew: `snakemake -n` knows). The time left is that of the study's own finished jobs of like kind, as many side by
side as there were on average since nothing ran last; without such jobs it is unknown.
"""

import argparse
import contextlib
import shutil
import sys
import time

from mcgrpo.commands.progress.screen import Screen
from mcgrpo.commands.progress.supervise import LOOK_SECONDS, supervise
from mcgrpo.launch import study_lock
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.paths import StudyFiles


def main() -> None:
    """Say how many trainings and evaluations of a study are done, what runs, at which step, and when it will end."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument(
        "--follow", action="store_true", help="go on until all is done: redrawn, or a line when changed"
    )
    help_run = "run Snakemake on the study (its --configfile is added), its own output in logs/STUDY/snakemake.log"
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="COMMAND", help=help_run)
    options = parser.parse_args()
    try:
        files = study_file.resolve(options)
        screen = Screen(study_file.read(files))
    except StudyError as error:
        sys.exit(f"error: {error}")
    if options.run and not shutil.which(options.run[0]):
        sys.exit(f"error: --run {options.run[0]}: no such command")
    if options.run:
        named = ["--configfile", *map(str, files)] if files else []
        log = StudyFiles(screen.config["study"]).log("snakemake")
        try:
            study_lock.hold(screen.config["study"])  # the log is that of the call that runs the study
        except KeyboardInterrupt:
            sys.exit(130)
        sys.exit(supervise([*options.run, *named], log, screen))
    if not options.follow:
        screen.terminal = True  # all of it
    with contextlib.suppress(KeyboardInterrupt):
        while not screen.update() and options.follow:
            time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
