"""Where progress is shown: a block that is redrawn on a terminal, else a line now and then."""

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mcgrpo.commands.progress.left import left
from mcgrpo.commands.progress.state import Study
from mcgrpo.commands.progress.text import block, line
from mcgrpo.study.plan import Config

REDRAWN_SECONDS = 2.0
LINE_SECONDS = 30.0
COST = 20.0
"""Looking may take one part in so many of the time: large studies on slow file systems are looked at less often."""


@dataclass
class Screen:
    """Progress of one study on standard output.

    Args:
        note: what else is to be said, below.
    """

    config: Config
    note: Callable[[], str] = lambda: ""
    terminal: bool = field(default_factory=sys.stdout.isatty)

    def __post_init__(self) -> None:
        self.study, self.drawn, self.next, self.said = Study(self.config), 0, 0.0, ""

    def update(self, *, last: bool = False) -> bool:
        """Look and show, if it is time to or for the last time; returns whether all is done that was seen so far."""
        begun = time.monotonic()
        if begun < self.next and not last:
            return False
        now = time.time()
        standing, made = self.study.look(now), (self.study.made(), len(self.study.report))
        rest = left(self.config, standing, now)
        if self.terminal:
            self._draw([*block(self.config["study"], standing, made, rest, now), *filter(None, [self.note()])])
        elif (said := "; ".join(filter(None, [line(standing, made, rest, now), self.note()])))[5:] != self.said:
            print(said, flush=True)
            self.said = said[5:]  # without the time of day
        wait = REDRAWN_SECONDS if self.terminal else LINE_SECONDS
        self.next = time.monotonic() + max(wait, COST * (time.monotonic() - begun))
        return made[0] == made[1] and all(how.state == "done" for how in standing.values())

    def say(self, text: str) -> None:
        """Print something that stays, above the block."""
        self._erase()
        print(text, flush=True)
        self.next = 0.0 if self.terminal else self.next

    def _draw(self, lines: list[str]) -> None:
        size = shutil.get_terminal_size()
        shown = [text[: size.columns - 1] for text in lines[: size.lines - 1]]
        self._erase()
        print("\n".join(shown), flush=True)
        self.drawn = len(shown)

    def _erase(self) -> None:
        if self.drawn:
            print(f"\033[{self.drawn}F\033[J", end="")
            self.drawn = 0
