"""Verify MATH answers in worker processes that can be killed: model output is untrusted text.

`Verifier.judge` may be called from any thread, on every rank of torchrun, and in a process that uses a GPU: it uses no
signals and does not fork this process. Each worker (`mcgrpo.grade.verify_worker`) is a separate interpreter with a time
limit and a memory limit per completion, and no `multiprocessing` process: that would import the user's script again,
which without `if __name__ == "__main__":` would start its training in every worker. A worker that hangs is replaced and
loses at most one verdict; one that is killed from outside is replaced and loses none.
"""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from signal import SIGKILL
from typing import Any

from mcgrpo.grade import verify_worker
from mcgrpo.grade.answers import Judgement
from mcgrpo.grade.verify_worker import Lines, write_line

TIMEOUT = 5.0
"""Seconds per completion (math-verify's own limit for one parse)."""
MEMORY_MB = 512
"""Memory per completion, beyond what a worker uses at its start."""
MAX_CHARACTERS = 400_000
"""A longer completion is `unparseable`, unread: about ten times the 8000 tokens of the longest evaluation."""
UNREAD = f"not read: longer than {MAX_CHARACTERS:,} characters"
GRACE = 0.75
"""Seconds after the time limit before a worker that has not replied is killed."""
START_SECONDS = 120.0
ATTEMPTS = 3
"""How often a process that was killed from outside is started for the same work."""
AT_ONCE = 32
"""Completions sent to a worker together; more of one gold are spread over the workers."""

_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")


class WorkerError(RuntimeError):
    """A worker did not start (for example, math-verify is missing; see stderr), or was killed every time."""


class _Group:
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


class _Worker:
    """One worker process, started on first use and again after it had to be stopped."""

    def __init__(self, timeout: float, memory_mb: int):
        self._command = [sys.executable, "-P", "-m", verify_worker.__name__, str(timeout), str(memory_mb)]
        self._patience = timeout + GRACE
        self._process: subprocess.Popen | None = None

    def judge(self, groups: Sequence[_Group], over: threading.Event) -> None:
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

    def _run(self, groups: Sequence[_Group], over: threading.Event) -> None:
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


class Verifier:
    """A pool of workers. Use as a context manager, or call `close`.

    Args:
        workers: number of processes; by default one per available core, divided by the ranks of the node, up to 8.
        timeout: seconds per completion. Parsing the gold has a limit of its own.
        memory_mb: memory per completion, beyond that of an idle worker.
    """

    def __init__(self, workers: int | None = None, timeout: float = TIMEOUT, memory_mb: int = MEMORY_MB):
        self.workers = workers or _default_workers()
        if timeout <= 0 or memory_mb <= 0 or self.workers < 0:
            raise ValueError(f"{workers=}, {timeout=} and {memory_mb=} must be positive")
        self._all = [_Worker(timeout, memory_mb) for _ in range(self.workers)]
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._all:
            self._idle.put(worker)

    def judge(
        self, answers: Sequence[str], solutions: Sequence[str], completions: Sequence[str], exact: bool = False
    ) -> list[Judgement]:
        """Judge each completion against its gold; the three sequences have the same length.

        A gold is parsed once per `AT_ONCE` of its completions in the call; equal completions are judged once. `exact`
        is that of `mcgrpo.grade.math_grader.MathGrader`.

        Raises:
            WorkerError: if a worker cannot be started, or is killed from outside repeatedly.
        """
        judged: dict[int, Judgement] = {}
        groups: list[_Group] = []
        filling: dict[tuple[str, str], _Group] = {}
        for place, (answer, solution, text) in enumerate(zip(answers, solutions, completions, strict=True)):
            if len(text) > MAX_CHARACTERS:
                judged[place] = Judgement("unparseable", None, note=UNREAD)
            else:
                group = filling.get((answer, solution))
                if group is None or len(group.places) == AT_ONCE:
                    group = filling[answer, solution] = _Group(answer, solution, exact)
                    groups.append(group)
                group.places.setdefault(text, []).append(place)
        if groups:
            # Small batches, so that no worker is idle while another has much to do.
            size = max(1, min(4, len(groups) // (4 * self.workers)))
            batches = [groups[start : start + size] for start in range(0, len(groups), size)]
            over = threading.Event()
            with ThreadPoolExecutor(min(self.workers, len(batches)), "mcgrpo-verifier") as pool:
                try:
                    list(pool.map(partial(self._judge, over), batches))
                except BaseException:  # such as a signal's: what is being judged may take minutes
                    over.set()
                    for worker in self._all:  # one of another call is replaced
                        worker.kill()
                    raise
            for group in groups:
                judged |= group.judged
        return [judged[place] for place in range(len(completions))]

    def _judge(self, over: threading.Event, groups: Sequence[_Group]) -> None:
        worker = self._idle.get()
        try:
            worker.judge(groups, over)
        except BaseException:
            worker.stop()
            raise
        finally:
            self._idle.put(worker)

    def start(self) -> None:
        """Start all workers now, rather than on first use (3 s of CPU each).

        Raises:
            WorkerError: if one does not become ready.
        """
        for worker in self._all:
            worker.start()

    def close(self) -> None:
        """Stop all workers; a later `judge` starts them again."""
        for worker in self._all:
            worker.stop()

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _default_workers() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(8, processors // int(os.environ.get("LOCAL_WORLD_SIZE", 1))))


_shared: Verifier | None = None
_lock = threading.Lock()


def shared() -> Verifier:
    """This process's verifier with default limits; closed when the interpreter exits."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Verifier()
            atexit.register(_shared.close)
    return _shared


def _forget_shared() -> None:
    # A forked child has its parent's workers in memory, but must not use or stop them.
    global _shared, _lock
    if _shared is not None:
        atexit.unregister(_shared.close)
    _shared, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_shared)
