"""Run Snakemake with its own output in a file, and say on the screen how far it is and what failed.

Snakemake's words that are looked for are those of `snakemake/logging.py`, version 9; where they are not found, the end
of its output is shown instead.
"""

import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from mcgrpo.progress.screen import Screen

NOTHING, STARTED = "Nothing to be done", "Select jobs to execute"
STEPS = re.compile(r"^(\d+ of \d+) steps \(", re.MULTILINE)
FAILED = re.compile(r"^Error in (?:rule|group) (\S+?):\n((?:    .*\n)*)", re.MULTILINE)
LOG = re.compile(r"^ +log: (.+?)(?: \(check log file\(s\) for error details\))?$", re.MULTILINE)
LOOK_SECONDS = 0.2
TAIL = 15  # lines of a log that failed
ENDING = 5  # of Snakemake's own output, where it has said before which job failed


class Output:
    """What Snakemake has written: read as it comes."""

    def __init__(self, path: Path):
        self.path, self.read, self.pending, self.failed = path, 0, "", False
        self.steps, self.doing = "", "is planning the jobs"

    def failures(self, *, ended: bool = False) -> list[str]:
        """What failed since the last call, each with the end of its log."""
        with self.path.open(encoding="utf-8", errors="replace") as file:
            file.seek(self.read)
            new = file.read()
            self.read = file.tell()
        if found := STEPS.findall(new):
            self.steps = found[-1]
        if STARTED in new or ended:
            self.doing = ""
        text = self.pending + new
        whole = text if ended else text[: text.rfind("\n\n") + 2] if "\n\n" in text else ""
        self.pending = text[len(whole) :]
        found = [_failure(*match) for match in FAILED.findall(whole)]
        self.failed = self.failed or bool(found)
        return found

    def note(self) -> str:
        """How many of Snakemake's jobs are done, which includes those of the report."""
        if self.doing:
            return f"Snakemake {self.doing}"
        return f"Snakemake: {self.steps} jobs" if self.steps else ""

    def end(self) -> list[str]:
        """The last lines, without empty ones."""
        return [text for text in self.path.read_text(errors="replace").splitlines() if text.strip()][-TAIL:]


def _failure(rule: str, details: str) -> str:
    logs = [Path(path) for match in LOG.findall(details) for path in match.split(", ")]
    lines = [f"FAILED: rule {rule}"]
    for log in logs:
        text = log.read_text(errors="replace").splitlines() if log.is_file() else ["(there is no such file)"]
        lines += [f"  the end of {log}:", *(f"  | {each}" for each in text[-TAIL:])]
    return "\n".join(lines if logs else [*lines, details])


def supervise(command: Sequence[str], log: Path, screen: Screen) -> int:
    """Run a command to its end; returns its exit code, as a shell gives it.

    Ctrl-C reaches the command from the terminal, as all of its process group: it ends its jobs, and so this ends, too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    screen.say(f"Snakemake writes to {log}")
    with log.open("w") as file:
        # Files that are open stay so: one is the lock on the study (see the Makefile), for as long as Snakemake lasts
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, close_fds=False)
    output = Output(log)
    screen.note = output.note
    interrupts = []

    def interrupted(*_: object) -> None:
        interrupts.append(True)
        output.doing = "was interrupted and ends its jobs"

    signal.signal(signal.SIGINT, interrupted)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))
    while process.poll() is None:
        for failure in output.failures():
            if not interrupts:  # what is interrupted fails
                screen.say(failure)
        screen.update()
        time.sleep(LOOK_SECONDS)
    if interrupts:
        screen.say(f"interrupted; the same call goes on from here. All of Snakemake's output: {log}")
        return _as_shell(process.returncode) or 130
    return _ended(process.returncode, output, screen)


def _ended(code: int, output: Output, screen: Screen) -> int:
    for failure in output.failures(ended=True):
        screen.say(failure)
    last = output.end()
    screen.update(last=True)
    if code:
        shown = last[-ENDING if output.failed else 0 :]
        print(*shown, f"snakemake ended with exit code {code}; all of its output: {output.path}", sep="\n", flush=True)
    else:
        for text in last:
            if text.startswith(NOTHING):
                print(text, flush=True)
    return _as_shell(code)


def _as_shell(code: int) -> int:
    """An exit code as a shell has it, also that of a process that a signal has ended."""
    return code if code >= 0 else 128 - code
