"""The progress of a study: `mcgrpo progress [STUDY.yaml ...]`, from its files alone, wherever its jobs run.

A training is done if it has finished with the present hyper-parameters (if code has changed, Snakemake may rerun it:
see `snakemake -n`). The time left is estimated from the study's own finished jobs of the same kind, with as many at a
time as ran before.
"""

import contextlib
import time

from mcgrpo import command_line
from mcgrpo.commands.progress.screen import Screen
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError


def main() -> None:
    """Print what is done, which trainings are running, at which step, and when the study will end."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    parser.add_argument("--follow", action="store_true", help="update until the study is finished")
    options = parser.parse_args()
    with command_line.errors(StudyError):
        screen = Screen(study_file.read(study_file.resolve(options)))
    if not options.follow:
        print("\n".join(screen.lines()))
        return
    with contextlib.suppress(KeyboardInterrupt):
        while (wait := screen.update()) and not screen.finished:
            time.sleep(wait)


if __name__ == "__main__":
    main()
