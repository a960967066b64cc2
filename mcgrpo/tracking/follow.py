"""The process beside trainings that logs their files to an MLflow store while they run.

python -m mcgrpo.tracking.follow --results results/STUDY               every training of a study, until its parent ends
python -m mcgrpo.tracking.follow --unfinished FOLDER --finished FOLDER one training, until it ends

A store that does not answer costs a warning; it is tried again, and then gets what it has missed.
"""

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.files import read_json
from mcgrpo.study.paths import RECORD
from mcgrpo.tracking import URI, warn
from mcgrpo.tracking.store import Store, identity_of
from mcgrpo.tracking.sync import Place, Skipped, Training, alone, logging_lock, places

INTERVAL_SECONDS = 10.0
FAILED_SECONDS = 60.0
"""How long a store that has failed is left alone."""
LOOK_SECONDS = 0.5
LAST_SECONDS = 20.0
"""How long a follower tries to log the end of trainings, once its parent has ended."""


class Follower:
    """Trainings and their store, which is opened when there is something to log.

    Args:
        uri: of the store.
        places: returns the trainings, by run name. Those that have finished already are left to `mcgrpo track`.
        lock: held while it logs.
    """

    def __init__(self, uri: str, places: Callable[[], dict[str, Place]], lock: Any = None):
        self.uri, self.places, self.lock = uri, places, lock or nullcontext()
        self.store: Store | None = None
        self.trainings: dict[str, Training] = {}
        self.over = {name for name, place in places().items() if place.folder == place.finished}
        self.failed, self.skipped = False, Skipped()

    def look(self) -> bool:
        """Log what is new; returns whether every training has ended and is logged."""
        with self.lock:
            settled = True
            for name, place in self.places().items():
                if name in self.over and place.folder == place.finished:
                    continue
                self.over.discard(name)
                try:
                    with self.skipped.on_error(name):
                        settled &= self._update(name, place)
                except Exception as error:
                    if not self.failed:
                        warn(f"run {name}", error)
                    self.failed = True
                    return False  # a store that does not answer is not asked for the other trainings too
            self.failed = False
            return settled

    def _update(self, name: str, place: Place) -> bool:
        training = self.trainings.pop(name, None)  # and back after success: an error has the next call look again
        if training is None:
            if place.folder is None:
                return True
            training = Training(self._opened(place), place)
        status = training.update()
        self.trainings[name] = training
        if status == "FINISHED":
            self.over.add(name)
        return status in ("FINISHED", "FAILED", "KILLED")

    def _opened(self, place: Place) -> Store:
        if self.store is None:
            study = str(read_json(place.folder / RECORD).get("study", place.results.name))
            self.store = Store(self.uri, study, identity_of(place.results))
        return self.store


def follow(follower: Follower, ends: Callable[[], bool]) -> None:
    """Look every few seconds until `ends`, and then until all is logged, the store fails or the time is over."""
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
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id; it may have ended by now")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--unfinished", type=Path)
    parser.add_argument("--finished", type=Path)
    options = parser.parse_args()
    stopped, uri = threading.Event(), os.environ[URI]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())

    def gone() -> bool:
        return stopped.is_set() or os.getppid() != options.parent

    with alone(options.results or options.unfinished):
        if options.results:
            return follow(Follower(uri, lambda: places(options.results), logging_lock(options.results)), gone)
        place = Place(options.unfinished, options.finished)
        follower = Follower(uri, lambda: {str(options.finished): place})
        follower.over.clear()
        follow(follower, lambda: gone() or ended(place))


def ended(place: Place) -> bool:
    """Whether the record says that the training no longer runs."""
    try:
        return place.folder is not None and read_json(place.folder / RECORD)["outcome"]["status"] != "running"
    except (ValueError, TypeError):  # TypeError: it was moved in between
        return False


if __name__ == "__main__":
    main()
