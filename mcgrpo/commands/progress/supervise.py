"""Run Snakemake with its own output in a file, and say on the screen how far it is and what failed.

Snakemake's words that are looked for are those of `snakemake/logging.py`, version 9; where they are not found, the end
of its output is shown instead.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mcgrpo.commands.progress.screen import Screen
from mcgrpo.launch import study_lock

NOTHING, STARTED = "Nothing to be done", "Select jobs to execute"
STEPS = re.compile(r"^(\d+ of \d+) steps \(", re.MULTILINE)
FAILED = re.compile(r"^Error in (?:rule|group) (\S+?):\n((?:    .*\n)*)", re.MULTILINE)
LOG = re.compile(r"^ +log: (.+?)(?: \(check log file\(s\) for error details\))?$", re.MULTILINE)
WARNING = re.compile(r"^warning: .+$", re.MULTILINE)
"""Of this package, about what fails nothing, as `mcgrpo.tracking.warn` has it."""
LOOK_SECONDS = 0.2
TAIL = 15  # lines of a log that failed
ENDING = 5  # of Snakemake's own output, where it has said before which job failed


class Output:
    """What Snakemake has written: read as it comes."""

    def __init__(self, path: Path):
        self.path, self.read, self.pending, self.line, self.failed = path, 0, "", "", False
        self.steps, self.doing = "", "is planning the jobs"
        self.warnings: set[str] = set()

    def news(self, *, ended: bool = False) -> list[str]:
        """What was warned of since the last call, once in all, and what failed, each with the end of its log."""
        with self.path.open(encoding="utf-8", errors="replace") as file:
            file.seek(self.read)
            new = file.read()
            self.read = file.tell()
        if found := STEPS.findall(new):
            self.steps = found[-1]
        if STARTED in new or ended:
            self.doing = ""
        return [*self._warnings(new, ended), *self._failures(new, ended)]

    def _warnings(self, new: str, ended: bool) -> list[str]:
        text = self.line + new
        whole = text if ended else text[: text.rfind("\n") + 1]
        self.line = text[len(whole) :]
        found = [each for each in dict.fromkeys(WARNING.findall(whole)) if each not in self.warnings]
        self.warnings.update(found)
        return found

    def _failures(self, new: str, ended: bool) -> list[str]:
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


class Guard:
    """Runs what shows something: whatever goes wrong with that must not end what is shown."""

    def __init__(self) -> None:
        self.said: set[str] = set()

    def __call__(self, show: Callable[[], object]) -> None:
        """Show it; without a reader (`... | head -1`) nothing is shown from then on, other errors are printed once."""
        try:
            show()
        except BrokenPipeError:
            # Also for what is still in the buffer, which Python would write when it ends
            with Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), sys.stdout.fileno())
        except Exception as error:
            told = f"progress cannot be shown: {type(error).__name__}: {error}"
            if told not in self.said:
                self.said.add(told)
                with contextlib.suppress(OSError):
                    print(told, file=sys.stderr, flush=True)


def supervise(command: Sequence[str], log: Path, screen: Screen) -> int:
    """Run a command to its end; returns its exit code, as a shell gives it, whatever becomes of the screen.

    Ctrl-C reaches the command from the terminal, as all of its process group: it ends its jobs, and so this ends, too.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    guarded = Guard()
    guarded(lambda: screen.say(f"Snakemake writes to {log}"))
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, **study_lock.hand_on())
    output = Output(log)
    screen.note = output.note
    interrupts = []

    def interrupted(*_: object) -> None:
        interrupts.append(True)
        output.doing = "was interrupted and ends its jobs"

    signal.signal(signal.SIGINT, interrupted)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))

    def look() -> None:
        for news in output.news():
            if not interrupts:  # what is interrupted fails
                screen.say(news)

    while process.poll() is None:
        guarded(look)
        guarded(screen.update)
        time.sleep(LOOK_SECONDS)
    code = _as_shell(process.returncode)
    if interrupts:
        guarded(lambda: screen.say(f"interrupted; the same call goes on from here. All of Snakemake's output: {log}"))
        return code or 130
    guarded(lambda: _end(process.returncode, output, screen))
    return code


def _end(code: int, output: Output, screen: Screen) -> None:
    for news in output.news(ended=True):
        screen.say(news)
    last = output.end()
    screen.update(last=True)
    if code:
        shown = last[-ENDING if output.failed else 0 :]
        print(*shown, f"snakemake ended with exit code {code}; all of its output: {output.path}", sep="\n", flush=True)
    else:
        for text in last:
            if text.startswith(NOTHING):
                print(text, flush=True)


def _as_shell(code: int) -> int:
    """An exit code as a shell has it, also that of a process that a signal has ended."""
    return code if code >= 0 else 128 - code
