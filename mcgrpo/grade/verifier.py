"""Verify MATH answers in worker processes that can be killed: model output is untrusted text.

`Verifier.judge` may be called from any thread, on every rank of torchrun, and in a process that uses a GPU: it uses no
signals and does not fork this process. A worker (`mcgrpo.grade.worker`) that hangs is replaced and loses at most one
verdict; one that is killed from outside is replaced and loses none.
"""

import atexit
import os
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mcgrpo.grade.answers import Judgement
from mcgrpo.grade.worker import Group, Worker

TIMEOUT = 5.0
"""Seconds per completion (math-verify's own limit for one parse)."""
MEMORY_MB = 512
"""Memory per completion, beyond what a worker uses at its start."""
MAX_CHARACTERS = 400_000
"""A longer completion is `unparseable`, unread: about ten times the 8000 tokens of the longest evaluation."""
UNREAD = f"not read: longer than {MAX_CHARACTERS:,} characters"
AT_ONCE = 32
"""Completions sent to a worker together; more of one gold are spread over the workers."""


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
        self._all = [Worker(timeout, memory_mb) for _ in range(self.workers)]
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
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
        groups: list[Group] = []
        filling: dict[tuple[str, str], Group] = {}
        for place, (answer, solution, text) in enumerate(zip(answers, solutions, completions, strict=True)):
            if len(text) > MAX_CHARACTERS:
                judged[place] = Judgement("unparseable", None, note=UNREAD)
            else:
                group = filling.get((answer, solution))
                if group is None or len(group.places) == AT_ONCE:
                    group = filling[answer, solution] = Group(answer, solution, exact)
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

    def _judge(self, over: threading.Event, groups: Sequence[Group]) -> None:
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
