"""One worker process of `mcgrpo.grade.verifier`: started, asked, killed at its limits, started again.

It runs `mcgrpo.grade.verify_worker`, a separate interpreter with a time limit and a memory limit per completion, and no
`multiprocessing` process: that would import the user's script again, which without `if __name__ == "__main__":` would
start its training in every worker.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from signal import SIGKILL
from typing import Any

from mcgrpo.grade import verify_worker
from mcgrpo.grade.answers import Judgement
from mcgrpo.grade.verify_worker import Lines, write_line

GRACE = 0.75
"""Seconds after the time limit before a worker that has not replied is killed."""
START_SECONDS = 120.0
ATTEMPTS = 3
"""How often a process that was killed from outside is started for the same work."""

_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")


class WorkerError(RuntimeError):
    """A worker did not start (for example, math-verify is missing; see stderr), or was killed every time."""


class Group:
    """The completions of one gold that are not judged yet, with their positions in the output."""

    def __init__(self, answer: str, solution: str, exact: bool):
        self.gold = {"answer": answer, "solution": solution, "exact": exact}
        self.places: dict[str, list[int]] = {}
        self.judged: dict[int, Judgement] = {}

    def request(self) -> dict[str, Any]:
        """The request to a worker: the gold, and every different completion not judged yet."""
        return {**self.gold, "completions": list(self.places)}

    def settle(self, judgement: Judgement) -> None:
        """Record the judgement of the first remaining completion."""
        for place in self.places.pop(next(iter(self.places))):
            self.judged[place] = judgement

    def settle_all(self, judgement: Judgement) -> None:
        """Record the judgement of all remaining completions."""
        while self.places:
            self.settle(judgement)


class Worker:
    """One worker process, started on first use and again after it had to be stopped."""

    def __init__(self, timeout: float, memory_mb: int):
        self._command = [sys.executable, "-P", "-m", verify_worker.__name__, str(timeout), str(memory_mb)]
        self._patience = timeout + GRACE
        self._process: subprocess.Popen | None = None

    def judge(self, groups: Sequence[Group], over: threading.Event) -> None:
        """Judge all completions of some groups, or until `close` is called.

        A process that ends is replaced and asked again. It reads no model output itself (the process that it forks
        does), so no completion caused its end, and none gets a verdict for it.

        Raises:
            WorkerError: if it does not start, or ends `ATTEMPTS` times without a verdict.
        """
        ended = 0
        while waiting := [group for group in groups if group.places]:
            left = sum(len(group.places) for group in waiting)
            try:
                self._run(waiting, over)
            except TimeoutError:
                self.stop()
                next(group for group in waiting if group.places).settle(Judgement("timeout", None))
            except (OSError, ValueError, KeyError) as failure:
                self.stop()
                if over.is_set():
                    return
                ended = ended + 1 if left == sum(len(group.places) for group in waiting) else 1
                if ended == ATTEMPTS:
                    raise WorkerError(f"a verification worker was ended from outside {ended} times") from failure

    def _run(self, groups: Sequence[Group], over: threading.Event) -> None:
        self.start()
        if over.is_set():
            raise BrokenPipeError
        write_line(self._process.stdin.fileno(), [group.request() for group in groups], self._patience)
        for group in groups:
            if not self._reply(self._patience)["gold"]:
                group.settle_all(Judgement("unparseable", None, gold_parsable=False))
            while group.places:
                reply = self._reply(self._patience)
                group.settle(Judgement(reply["verdict"], reply["extracted"], note=reply["note"]))

    def start(self) -> None:
        """Start the process, if it is not running, and wait until it is ready; try again if it is killed before.

        Raises:
            WorkerError: if it does not become ready.
        """
        command = " ".join(self._command)
        for _ in range(ATTEMPTS):
            if self._process is not None:
                return
            code = self._start()
            if code is not None and code >= 0:
                raise WorkerError(f"a verification worker did not start, its exit code is {code}: {command}")
        if self._process is None:
            raise WorkerError(f"a verification worker did not start, it was killed {ATTEMPTS} times: {command}")

    def _start(self) -> int | None:
        """Start the process; returns its exit code if it ends before it is ready (negative: the signal)."""
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path or os.curdir for path in sys.path)
        environment |= {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        try:
            process = self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=environment,
                start_new_session=True,
            )
            self._lines = Lines(process.stdout.fileno())
            self._reply(START_SECONDS)
        except BrokenPipeError:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
            self.stop()
            return process.returncode
        except OSError as failure:
            self.stop()
            raise WorkerError(
                f"a verification worker did not start ({failure!r}): {' '.join(self._command)}"
            ) from failure
        return None

    def _reply(self, seconds: float) -> dict[str, Any]:
        line = self._lines.read(seconds)
        if line is None:
            raise TimeoutError
        if not line:
            raise BrokenPipeError
        return json.loads(line)

    def kill(self) -> None:
        """Kill the process from another thread, which reaps it."""
        if (process := self._process) is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)

    def stop(self) -> None:
        """Kill the process with its children, and reap it."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            process.wait()
            process.stdin.close()
            process.stdout.close()
