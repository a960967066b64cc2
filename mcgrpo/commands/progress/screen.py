"""Progress on standard output: a block that is redrawn on a terminal, else a line when something has changed."""

import sys
import threading
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mcgrpo.commands.progress.left import left
from mcgrpo.commands.progress.state import Study
from mcgrpo.commands.progress.text import block
from mcgrpo.study.plan import Config

REDRAWN_SECONDS, LINE_SECONDS = 2.0, 30.0
COST = 20.0
"""The wait between two updates is this many times the seconds that reading took: large studies are read less often."""


class Screen:
    """The progress of one study.

    Attributes:
        note: a last line, set from outside.
        finished: whether all jobs were done and the report was made when the files were last read.
    """

    def __init__(self, config: Config, note: str = ""):
        self.study, self.note, self.finished = Study(config), note, False
        self.console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        self._line, self._fault, self._ended = "", "", threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def lines(self) -> list[str]:
        """The progress in words, read anew."""
        now, study = time.time(), self.study
        statuses, others, made = study.read(now), study.others(now), sum(path.exists() for path in study.report)
        self.finished = made == len(study.report) and all(status.state == "done" for status in statuses.values())
        report = f"{made} of {len(study.report)} files"
        rest = left(statuses, now, [*others.values()])
        return [*block(study.config["study"], statuses, report, rest, now, others), *filter(None, [self.note])]

    def update(self) -> float:
        """Show the progress; returns the seconds to wait before the next update."""
        begin = time.monotonic()
        lines = self.lines()
        if self._live:
            self._live.start()
            self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)
        elif (line := "; ".join(" ".join(text.split()) for text in lines[1:] if text[0] != " ")) != self._line:
            self._line = line
            self.say(f"{lines[0]}: {line}")
        return max(REDRAWN_SECONDS if self._live else LINE_SECONDS, COST * (time.monotonic() - begin))

    def say(self, text: str) -> None:
        """Print a message that stays, above the block."""
        self.console.print(text)

    def start(self) -> None:
        """Update in the background; an error is printed once and ends nothing."""
        self._thread.start()

    def stop(self) -> None:
        """Update for the last time."""
        self._ended.set()
        self._thread.join()
        self._guarded_update()
        if self._live:
            self._live.stop()

    def _follow(self) -> None:
        wait = 0.0
        while not self._ended.wait(wait):
            wait = self._guarded_update()

    def _guarded_update(self) -> float:
        try:
            return self.update()
        except Exception as error:
            if (fault := f"progress cannot be shown: {type(error).__name__}: {error}") != self._fault:
                self._fault = fault
                print(fault, file=sys.stderr, flush=True)
            return LINE_SECONDS
