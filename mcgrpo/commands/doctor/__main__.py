"""What this machine has and lacks for a study: `mcgrpo doctor [STUDY.yaml ...]`, a line for each check.

Nothing is started or downloaded (but a model's config.json); the hub is asked for what is not here. The exit code is 1
if something is lacking. Memory and disk are estimates (`mcgrpo.commands.forecast.memory`,
`mcgrpo.commands.forecast.space`).
"""

import argparse
import sys
from collections.abc import Iterator

from mcgrpo.commands.doctor import demands, hub, machine, packages
from mcgrpo.commands.doctor.checks import Check, summary
from mcgrpo.commands.forecast.sizes import sizes
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import Config, runs


def examine(config: Config) -> Iterator[Check]:
    """All checks of a study on this machine."""
    everything = runs(config)
    trained = [run for run in everything if run.method != UNTRAINED]
    yield Check("ok", "study", f"{config['study']}: {len(everything)} runs, {len(trained)} of them trainings")
    yield machine.check_gpus(config)
    yield machine.check_cpu(config)
    yield from packages.check_packages(config, trained)
    yield from machine.check_programs()
    yield machine.check_tracking(config)
    known = sizes(config)
    yield from hub.check_hub(config, known)
    yield from demands.check_sharded(config, trained)
    yield from demands.check_batches(config, trained, known)
    yield from demands.check_memory(config, trained, known)
    yield demands.check_disk(config, trained, known)


def study_or_fault(options: argparse.Namespace) -> tuple[Config | None, Check | None]:
    """The study, or what is wrong with its files."""
    try:
        return study_file.read(study_file.resolve(options)), None
    except StudyError as error:
        return None, Check("lacking", "study", str(error), "mend the study file")


def main() -> None:
    """Say what this machine has and lacks for a study."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    study_file.add_arguments(parser)
    options = parser.parse_args()
    config, fault = study_or_fault(options)
    checks = []
    for check in examine(config) if config else [fault]:
        checks.append(check)
        print(check, flush=True)
    print(f"\n{summary(checks)}")
    sys.exit(any(check.status == "lacking" for check in checks))


if __name__ == "__main__":
    main()
