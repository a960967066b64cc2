"""The process beside trainings that keeps an MLflow store up to date with their files while they run.

python -m mcgrpo.tracking.follow --results results/STUDY               every training of a study, until its parent ends
python -m mcgrpo.tracking.follow --unfinished FOLDER --finished FOLDER one training, until it ends

A store that does not answer costs a warning; it is tried again, and told what it has missed.
"""

import argparse
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mcgrpo.files import read_json
from mcgrpo.tracking import URI, warn
from mcgrpo.tracking.identity import identity_of
from mcgrpo.tracking.store import Store
from mcgrpo.tracking.sync import Place, Training, alone, of_one, places, telling

INTERVAL_SECONDS = 10.0
FAILED_SECONDS = 60.0
"""How long a store that has failed is left alone."""
LOOK_SECONDS = 0.5
LAST_SECONDS = 20.0
"""How long a follower tries to see the end of trainings into the store, once its parent has ended."""


class Follower:
    """Trainings and the store they are told to, which is opened when there is something to tell."""

    def __init__(self, uri: str, found: Callable[[], dict[str, Place]], lock: Any = None):
        self.uri, self.found, self.lock = uri, found, lock or nullcontext()
        self.store: Store | None = None
        self.trainings: dict[str, Training] = {}
        self.over = {name for name, place in found().items() if place.folder == place.finished}
        self.failed, self.skipped = False, set[str]()

    def look(self) -> bool:
        """Tell what is new; returns whether nothing remains to be told of any training."""
        with self.lock:
            return self._look()

    def _look(self) -> bool:
        settled = True
        for name, place in self.found().items():
            if name in self.over and place.folder == place.finished:
                continue
            self.over.discard(name)
            try:
                settled &= self._tell(name, place)
            except Exception as error:
                self.trainings.pop(name, None)  # what the store has is looked up again
                if not of_one(error):
                    self._fail(name, error)
                    return False  # without asking a store that does not answer for every other training too
                self._skip(name, error)
        self.failed = False
        return settled

    def _fail(self, name: str, error: Exception) -> None:
        if not self.failed:
            warn(f"run {name}", error)
        self.failed = True

    def _skip(self, name: str, error: Exception) -> None:
        if name not in self.skipped:
            warn(f"run {name}", error)
        self.skipped.add(name)

    def _tell(self, name: str, place: Place) -> bool:
        if name not in self.trainings:
            if place.folder is None:
                return True
            self.trainings[name] = Training(self._opened(place), place)
        status = self.trainings[name].update()
        if status == "FINISHED":
            self.over.add(name)
        return status in ("FINISHED", "FAILED", "KILLED")

    def _opened(self, place: Place) -> Store:
        if self.store is None:
            study = str(read_json(place.folder / "run.json").get("study", place.results.name))
            self.store = Store(self.uri, study, identity_of(place.results))
        return self.store


def follow(follower: Follower, ends: Callable[[], bool]) -> None:
    """Look every few seconds until it ends, and then until all is told, the store fails or the time is over."""
    last = -math.inf
    while not ends():
        if time.monotonic() - last > (FAILED_SECONDS if follower.failed else INTERVAL_SECONDS):
            follower.look()
            last = time.monotonic()
        time.sleep(LOOK_SECONDS)
    deadline = time.monotonic() + LAST_SECONDS
    while not follower.look() and not follower.failed and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def main() -> None:
    """Follow a study or one training."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id; it may have ended by now")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--unfinished", type=Path)
    parser.add_argument("--finished", type=Path)
    options = parser.parse_args()
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())

    def gone() -> bool:
        return stopped.is_set() or os.getppid() != options.parent

    if options.results:
        follower = Follower(os.environ[URI], lambda: places(options.results), telling(options.results))
        with alone(options.results):
            follow(follower, gone)
    else:
        place = Place(options.unfinished, options.finished)
        with alone(options.unfinished):
            follower = Follower(os.environ[URI], lambda: {str(options.finished): place})
            follower.over.clear()
            follow(follower, lambda: gone() or ended(place))


def ended(place: Place) -> bool:
    """Whether the one training that is followed says that it runs no more."""
    folder = place.folder
    try:
        return folder is not None and read_json(folder / "run.json")["outcome"]["status"] != "running"
    except ValueError:
        return False


if __name__ == "__main__":
    main()
