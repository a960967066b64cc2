"""The command line: `mcgrpo COMMAND ...` runs `python -m` of a module."""

import os
import runpy
import select
import sys
from signal import SIGPIPE

COMMANDS = {
    "bundle": ("mcgrpo.commands.evidence.bundle", "pack a study into one archive that can be verified"),
    "check-verl": ("mcgrpo.commands.check_verl", "say whether verl has loaded the estimators and trainers"),
    "claims": ("mcgrpo.commands.claims", "judge the paper's claims by its numbers and by a study's"),
    "doctor": ("mcgrpo.commands.doctor", "check that this machine can run a study"),
    "grade": ("mcgrpo.grade", "grade a file of completions"),
    "lock": ("mcgrpo.study.lock", "pin the hub revisions of a study"),
    "plan": ("mcgrpo.commands.plan", "estimate a study: trainings, steps, hours, detectable gains"),
    "sign-flips": ("mcgrpo.analyse.sign_flips", "compute the sign-flip rates of a file of grades"),
    "track": ("mcgrpo.tracking", "log what is finished of a study to MLflow"),
    "verify": ("mcgrpo.commands.evidence.verify", "verify an archive of a study"),
}


def main() -> None:
    """Run one command. If its reader closes the pipe (`| head`), exit quietly with the shell's code for SIGPIPE."""
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_has_left():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        sys.exit(128 + SIGPIPE)


def _reader_has_left() -> bool:
    """Whether stdout is the broken pipe."""
    stdout = select.poll()
    stdout.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in stdout.poll(0))


def _run() -> None:
    """Run one command; `mcgrpo COMMAND --help` lists its options."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in COMMANDS:
        sys.argv = [f"mcgrpo {name}", *sys.argv[2:]]
        try:
            runpy.run_module(COMMANDS[name][0], run_name="__main__")
        except ModuleNotFoundError as error:
            sys.exit(f"mcgrpo {name}: no module {error.name!r}; the commands need: pip install 'mcgrpo[workflow]'")
        return
    listed = "\n".join(f"  {command:12}{what}" for command, (_, what) in COMMANDS.items())
    text = f"usage: mcgrpo COMMAND [--help] ...\n\n{listed}"
    if name not in ("-h", "--help"):
        sys.exit(f"mcgrpo: no command {name!r}\n{text}")
    print(text)


if __name__ == "__main__":
    main()
