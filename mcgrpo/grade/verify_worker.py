"""The worker process of verification: a supervisor that forks graders, limits them and kills them.

Started by `mcgrpo.grade.verifier` as `python -m mcgrpo.grade.verify_worker GRADERS TIMEOUT MEMORY_MB`. The supervisor
loads math-verify once and only passes model output on. The graders, forked from it, read that output; each is replaced
within milliseconds if it exceeds its time or memory, or dies. (Forking is safe here: one thread, no torch, no GPU.)

A line on stdin is a list of groups, `{"answer", "solution", "exact", "completions": [[place, text], ...]}`. A line on
stdout is a place with the fields of its `mcgrpo.grade.task.Judgement`; groups are judged in any order.

A grader that dies within its time, which may be by a signal from outside, is replaced and asked once more.
"""

import gc
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

GROWTH = 0.25
"""A grader whose peak memory exceeds this share of the limit is replaced before the next request."""

_FORK = multiprocessing.get_context("fork")


class Grader:
    """A forked process that judges one group at a time; forked again after it has ended.

    Args:
        timeout: seconds for the gold, and for each completion.
        memory_mb: beyond what the supervisor uses.
    """

    def __init__(self, timeout: float, memory_mb: int):
        self.limits = timeout, memory_mb
        self.left: deque[tuple[int, str]] = deque()
        self._process: Any = None

    def judge(self, group: dict[str, Any]) -> None:
        """Begin with a group; `step` prints its judgements."""
        self._group, self.left = group, deque(group["completions"])
        self._gold_is_known = self._is_second_try = False
        self._ask()

    def step(self, has_reply: bool) -> None:
        """Read a reply, if there is one; replace the process if it has ended, or is over its time."""
        if has_reply:
            try:
                reply = json.loads(self.connection.recv_bytes())
            except (EOFError, OSError):
                return self._lost("error")
            self._read(reply)
        elif time.monotonic() > self.deadline:
            self._lost("timeout")

    def _read(self, reply: dict[str, Any]) -> None:
        self._gold_is_known = True
        self.deadline = time.monotonic() + self.limits[0]
        if not reply["gold_parsable"]:
            self._refuse_gold()
        elif "verdict" in reply:
            self._settle(reply["verdict"], extracted=reply["extracted"])
            if reply["spent"]:
                self.kill()
                self._ask()

    def _lost(self, verdict: str) -> None:
        """There will be no reply: try again if it is not known why, else go on with the rest."""
        self.kill()
        if verdict == "error" and not self._is_second_try:
            self._is_second_try = True
        elif self._gold_is_known:
            self._settle(verdict)
        else:
            self._refuse_gold()
        self._ask()

    def _settle(self, verdict: str, extracted: str | None = None, **others: Any) -> None:
        place, _ = self.left.popleft()
        self._is_second_try = False
        print(json.dumps([place, {"verdict": verdict, "extracted": extracted, **others}]), flush=True)

    def _refuse_gold(self) -> None:
        while self.left:
            self._settle("unparseable", gold_parsable=False)

    def _ask(self) -> None:
        """Send the gold and the completions that are left."""
        if not self.left:
            return
        if self._process is None:
            self._fork()
        self.deadline = time.monotonic() + self.limits[0]
        request = json.dumps(self._group | {"completions": list(self.left)})
        with suppress(OSError):  # that the process has ended is seen when its reply is read
            self.connection.send_bytes(request.encode())

    def _fork(self) -> None:
        self.connection, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_reply_forever, args=(theirs, *self.limits), daemon=True)
        self._process.start()
        theirs.close()

    def kill(self) -> None:
        """Kill and reap the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
            self._process = None


def _confine(memory_mb: int) -> None:
    """Limit this process: additional memory; no terminal, no file written, no process, no core dump."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    statm = Path("/proc/self/statm")
    if statm.exists():
        space = int(statm.read_text().split()[0]) * resource.getpagesize() + memory_mb * 2**20
        _, hard = resource.getrlimit(resource.RLIMIT_AS)  # set by `ulimit -v`, for example
        space = space if hard == resource.RLIM_INFINITY else min(space, hard)
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))


def _reply_forever(connection: Connection, timeout: float, memory_mb: int) -> None:
    """A grader: for each group a reply on the gold, then, if it parses, one for each completion."""
    from mcgrpo.grade.math_grader import MathGrader

    def set_alarm() -> None:
        # The supervisor kills at the limit. If it is gone, the kernel ends this process soon after.
        signal.setitimer(signal.ITIMER_REAL, timeout + 1)

    def reply(**content: Any) -> None:
        connection.send_bytes(json.dumps({"gold_parsable": grader.gold_parsable, **content}).encode())
        set_alarm()

    # Without the other ends of the pipes, which it has inherited, its own ends with the supervisor
    for number in [int(path.name) for path in Path("/dev/fd").iterdir()]:  # `closerange` may try all up to the limit
        if number > 2 and number != connection.fileno():
            with suppress(OSError):
                os.close(number)
    _confine(memory_mb)
    start = _peak_kb()
    while True:
        group = json.loads(connection.recv_bytes())
        set_alarm()
        grader = MathGrader(group["answer"], group["solution"], group["exact"])
        reply()
        for _, completion in group["completions"] if grader.gold_parsable else ():
            verdict, extracted = grader.judge(completion)
            spent = _peak_kb() - start > GROWTH * memory_mb * 1024
            reply(verdict=verdict, extracted=extracted, spent=spent)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def serve(groups: Sequence[dict[str, Any]], graders: Sequence[Grader]) -> None:
    """Print the judgement of every completion."""
    waiting = deque(groups)
    while True:
        for grader in graders:
            if waiting and not grader.left:
                grader.judge(waiting.popleft())
        busy = [grader for grader in graders if grader.left]
        if not busy:
            return
        patience = min(grader.deadline for grader in busy) - time.monotonic()
        ready = wait([grader.connection for grader in busy], max(0.0, patience))
        for grader in busy:
            grader.step(grader.connection in ready)


def main() -> None:
    """Load math-verify, announce readiness, and serve groups until stdin ends."""
    from mcgrpo.grade.math_grader import warm_up

    warm_up()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    count, timeout, memory_mb = sys.argv[1:]
    graders = [Grader(float(timeout), int(memory_mb)) for _ in range(int(count))]
    try:
        print("ready", flush=True)
        for line in sys.stdin:
            serve(json.loads(line), graders)
    except BrokenPipeError:  # nobody reads the judgements any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    finally:
        for grader in graders:
            grader.kill()


if __name__ == "__main__":
    main()
