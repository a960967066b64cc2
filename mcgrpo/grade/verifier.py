"""Verify MATH answers in worker processes that can be killed: model output is untrusted text.

`Verifier.judge` may be called from any thread, on every rank of torchrun, and in a process that uses a GPU: it uses no
signals and does not fork this process. It runs `mcgrpo.grade.verify_worker`, a separate interpreter, and no
`multiprocessing` process: that would import the user's script again, which without `if __name__ == "__main__":` would
start its training in every worker.
"""

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from signal import SIGKILL
from typing import Any

from mcgrpo.grade import verify_worker
from mcgrpo.grade.task import Judgement

TIMEOUT = 5.0
"""Seconds per completion (math-verify's own limit for one parse)."""
MEMORY_MB = 512
"""Memory per completion, beyond what a worker uses at its start."""
MAX_CHARACTERS = 400_000
"""A longer completion is `unparseable`, unread: about ten times the 8000 tokens of the longest evaluation."""
UNREAD = f"not read: longer than {MAX_CHARACTERS:,} characters"
AT_ONCE = 32
"""Completions given to a grader together; more of one gold are spread over the graders."""
IN_A_LINE = 512
"""Requests sent to the worker together, which holds their texts."""
ATTEMPTS = 3
"""How often the worker is started for the same work, if it is killed."""

_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")

Groups = dict[tuple[str, str], dict[int, str]]
"""(answer, solution) -> places of its completions -> their texts."""


class WorkerError(RuntimeError):
    """The worker did not start (for example, math-verify is missing; see stderr), or was killed every time."""


class Verifier(AbstractContextManager):
    """A worker process with a pool of graders. Use as a context manager, or call `close`.

    Args:
        workers: number of graders; by default one per available core, divided by the ranks of the node, up to 8.
        timeout: seconds per completion. Parsing the gold has a limit of its own.
        memory_mb: memory per completion, beyond that of an idle grader.
    """

    def __init__(self, workers: int | None = None, timeout: float = TIMEOUT, memory_mb: int = MEMORY_MB):
        workers = workers or _default_workers()
        if timeout <= 0 or memory_mb <= 0 or workers < 0:
            raise ValueError(f"{workers=}, {timeout=} and {memory_mb=} must be positive")
        limits = (workers, timeout, memory_mb)
        self._command = [sys.executable, "-P", "-m", verify_worker.__name__, *map(str, limits)]
        self._process: subprocess.Popen | None = None
        self._lock = threading.Lock()

    def judge(
        self, answers: Sequence[str], solutions: Sequence[str], completions: Sequence[str], exact: bool = False
    ) -> list[Judgement]:
        """Judge each completion against its gold; the three sequences have the same length.

        A gold is parsed once per `AT_ONCE` of its completions in the call; equal completions are judged once. `exact`
        is that of `mcgrpo.grade.math_grader.MathGrader`.

        Raises:
            WorkerError: if the worker cannot be started, or is killed repeatedly.
        """
        rows = list(zip(answers, solutions, completions, strict=True))
        first: dict[tuple[str, str, str], int] = {}
        for place, row in enumerate(rows):
            first.setdefault(row, place)
        judged: dict[int, Judgement] = {}
        groups: Groups = defaultdict(dict)
        for (answer, solution, text), place in first.items():
            if len(text) > MAX_CHARACTERS:
                judged[place] = Judgement("unparseable", None, note=UNREAD)
            else:
                groups[answer, solution][place] = text
        with self._lock:
            self._judge(groups, exact, judged)
        return [judged[first[row]] for row in rows]

    def _judge(self, groups: Groups, exact: bool, judged: dict[int, Judgement]) -> None:
        """Add the judgement of every place.

        A worker that ends is replaced and asked again. It reads no model output itself (the graders that it forks do),
        so no completion caused its end, and none gets a verdict for it.
        """
        ended = 0
        while requests := _requests(groups, exact, judged)[:IN_A_LINE]:
            before = len(judged)
            try:
                self.start()
                self._process.stdin.write(json.dumps(requests) + "\n")
                self._process.stdin.flush()
                for _ in range(sum(len(request["completions"]) for request in requests)):
                    place, judgement = json.loads(self._process.stdout.readline())
                    judged[place] = Judgement(**judgement)
            except (OSError, ValueError) as failure:  # a pipe that has ended, or the rest of a line
                self.close()
                ended = ended + 1 if len(judged) == before else 1
                if ended == ATTEMPTS:
                    raise WorkerError(f"the verification worker was killed {ended} times") from failure
            except BaseException:  # such as a signal's: what is being judged may take minutes
                self.close()
                raise

    def start(self) -> None:
        """Start the worker now, rather than on first use (3 s of CPU).

        Raises:
            WorkerError: if it ends before it is ready.
            ConnectionError: if it is killed before that.
        """
        if self._process is not None:
            return
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path or os.curdir for path in sys.path)
        environment |= {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, text=True, env=environment, start_new_session=True
        )
        if not self._process.stdout.readline():
            code = self._process.wait()
            self.close()
            if code < 0:
                raise ConnectionError("the verification worker was killed before it was ready")
            command = " ".join(self._command)
            raise WorkerError(f"the verification worker did not start, its exit code is {code}: {command}")

    def close(self) -> None:
        """Stop the worker and its graders; a later `judge` starts them again."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            process.wait()
            process.stdout.close()
            with suppress(BrokenPipeError):
                process.stdin.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _requests(groups: Groups, exact: bool, judged: dict[int, Judgement]) -> list[dict[str, Any]]:
    """The groups of `verify_worker` with what is not judged yet, `AT_ONCE` completions in each."""
    requests = []
    for (answer, solution), texts in groups.items():
        left = [(place, text) for place, text in texts.items() if place not in judged]
        gold = {"answer": answer, "solution": solution, "exact": exact}
        requests += [gold | {"completions": left[at : at + AT_ONCE]} for at in range(0, len(left), AT_ONCE)]
    return requests


def _default_workers() -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(8, processors // int(os.environ.get("LOCAL_WORLD_SIZE", 1))))


def shared() -> Verifier:
    """This process's verifier with default limits, whose worker ends with this process; a forked child has its own."""
    return _of_process(os.getpid())


@cache
def _of_process(number: int) -> Verifier:
    return Verifier()
