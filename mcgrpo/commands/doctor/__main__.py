"""Check that this machine can run a study: `mcgrpo doctor [STUDY.yaml ...]`, a line for each check.

Nothing is started or downloaded; the hub is asked for what is not on this machine. The exit code is 1 if there is an
error. Memory is not estimated: see `accelerate estimate-memory`.
"""

import argparse
import sys
from collections.abc import Iterator

from mcgrpo import command_line
from mcgrpo.commands.doctor import hub, machine, packages
from mcgrpo.commands.doctor.checks import Check, summary
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import runs


def examine(options: argparse.Namespace) -> Iterator[Check]:
    """All checks of a study on this machine."""
    try:
        config = study_file.read(options.studies)
    except StudyError as error:
        yield Check("error", "study", str(error), "correct the study file")
        return
    everything = runs(config)
    trainings = [run for run in everything if run.method != UNTRAINED]
    yield Check("ok", "study", f"{config['study']}: {len(everything)} runs, {len(trainings)} of them trainings")
    yield from machine.check_machine(config)
    yield from packages.check_packages(config, trainings)
    yield from hub.check_hub(config)


def main() -> None:
    """Check that this machine can run a study: GPUs, packages, models and data sets."""
    parser = command_line.parser(main.__doc__)
    study_file.add_arguments(parser)
    checks = []
    for check in examine(parser.parse_args()):
        checks.append(check)
        print(check, flush=True)
    print(f"\n{summary(checks)}")
    sys.exit(any(check.status == "error" for check in checks))


if __name__ == "__main__":
    main()
