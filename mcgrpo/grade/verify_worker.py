"""A worker process for verification: a supervisor that forks a grader, limits it and kills it.

Started by `mcgrpo.grade.worker` as `python -m mcgrpo.grade.verify_worker TIMEOUT MEMORY_MB`. The supervisor loads
math-verify once and only passes model output on. The grader, forked from it, reads that output, and is replaced within
milliseconds if it exceeds its time or memory, or dies. (Forking is safe here: one thread, no torch, no GPU.)

Each line on stdin is a list of groups, `{"answer", "solution", "exact", "completions"}`. Each line on stdout is a
reply: for each group `{"gold": bool}`, then, if the gold parses, `{"verdict", "extracted", "note"}` per completion, in
order.

A grader that is killed from outside is replaced and asked again, once per completion.
"""

import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

GROWTH = 0.25
"""A grader whose peak memory exceeds this share of the limit is replaced before the next request."""

OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
"""Signals that come from outside a grader: no text can make it send them to itself."""
KILLED_TWICE = "not judged: its process was killed from outside twice"


class Lines:
    """Lines read from a pipe, each with a time limit."""

    def __init__(self, fd: int):
        self.fd = fd
        self._buffer = bytearray()

    def read(self, seconds: float | None = None) -> bytes | None:
        """One line; empty at the end of the pipe; None if no whole line arrived within `seconds`."""
        deadline = None if seconds is None else time.monotonic() + seconds
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self.fd], [], [], left)[0]:
                return None
            chunk = os.read(self.fd, 1 << 20)
            if not chunk:
                return b""
            self._buffer += chunk
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line


def write_line(fd: int, content: Any, seconds: float | None = None) -> None:
    """Write one JSON value as one ASCII line (lone surrogates stay escaped).

    Raises:
        TimeoutError: if it was not read within `seconds`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    data = memoryview(json.dumps(content).encode("ascii") + b"\n")
    while data:
        # A pipe that is writable by select accepts PIPE_BUF bytes without blocking.
        if deadline is not None and not select.select([], [fd], [], max(0.0, deadline - time.monotonic()))[1]:
            raise TimeoutError
        data = data[os.write(fd, data[: select.PIPE_BUF]) :]


class Grader:
    """A forked process that parses and compares; forked again after it was killed."""

    def __init__(self, timeout: float, memory_mb: int):
        self.timeout, self.memory_mb = timeout, memory_mb
        self._pid = 0

    def ask(self, groups: list[dict[str, Any]]) -> dict[str, Any]:
        """Send groups; returns the reply on the gold of the first. All other replies follow without a request."""
        if not self._pid:
            self._fork()
        try:
            write_line(self._requests, groups, self.timeout)
        except TimeoutError:
            return self._lost("timeout")
        except BrokenPipeError:
            return self._lost("error")
        return self.reply()

    def reply(self) -> dict[str, Any]:
        """The next reply, or the verdict `timeout` or `error` if the grader died first."""
        if not self._pid:
            return self._lost("error")
        line = self._replies.read(self.timeout)
        if not line:
            return self._lost("timeout" if line is None else "error")
        reply = json.loads(line)
        if reply.pop("spent", False):
            self.kill()
        return reply

    def verdict(self, groups: list[dict[str, Any]]) -> dict[str, Any]:
        """The next verdict; a grader that died is replaced and sent the remaining completions."""
        if not self.is_alive():
            gold = self.ask(groups)
            if "verdict" in gold:
                return gold
        return self.reply()

    def is_alive(self) -> bool:
        """Whether there is a process that can still reply."""
        return self._pid > 0

    def _lost(self, verdict: str) -> dict[str, Any]:
        ended_by = self.kill()
        outside = verdict == "error" and ended_by in OUTSIDE
        return {"gold": False, "verdict": verdict, "extracted": None, "outside": outside}

    def kill(self) -> int:
        """Kill and reap the grader; returns the signal that ended it, which may be an earlier one."""
        if not self._pid:
            return 0
        os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        os.close(self._requests)
        os.close(self._replies.fd)
        self._pid = 0
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def _fork(self) -> None:
        requests, self._requests = os.pipe()
        replies, replying = os.pipe()
        self._replies = Lines(replies)
        self._pid = os.fork()
        if self._pid:
            os.close(requests)
            os.close(replying)
            return
        try:
            os.close(self._requests)
            os.close(replies)
            _confine(self.memory_mb)
            _reply_forever(requests, replying, self.timeout, self.memory_mb)
        finally:
            os._exit(1)


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


def _reply_forever(requests: int, replies: int, timeout: float, memory_mb: int) -> None:
    from mcgrpo.grade.math_grader import MathGrader

    lines, start = Lines(requests), _peak_kb()
    while line := lines.read():
        for group in json.loads(line):
            _set_alarm(timeout)
            grader = MathGrader(group["answer"], group["solution"], group["exact"])
            write_line(replies, {"gold": grader.gold_parsable})
            for completion in group["completions"] if grader.gold_parsable else ():
                _set_alarm(timeout)
                verdict, extracted = grader.judge(completion)
                spent = _peak_kb() - start > GROWTH * memory_mb * 1024
                write_line(replies, {"verdict": verdict, "extracted": extracted, "spent": spent})
                if spent:
                    return
        signal.setitimer(signal.ITIMER_REAL, 0)


def _set_alarm(timeout: float) -> None:
    # The supervisor kills at the limit. If the supervisor is gone, the kernel ends this process soon after.
    signal.setitimer(signal.ITIMER_REAL, timeout + 1)


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _grade(grader: Grader, groups: list[dict[str, Any]]) -> None:
    """Reply on every group; what a dead grader left is sent to the next one."""
    for place, group in enumerate(groups):
        rest = groups[place + 1 :]
        reply = grader.reply() if place and grader.is_alive() else grader.ask([group, *rest])
        if reply.get("verdict") == "error":  # it died for another reason: no verdict on the gold
            reply = grader.ask([group, *rest])
        if reply.get("outside"):
            sys.exit("the process that reads golds was killed from outside twice")
        write_line(1, {"gold": reply["gold"]})
        left = deque(group["completions"] if reply["gold"] else ())
        killed = False
        while left:
            reply = grader.verdict([group | {"completions": list(left)}, *rest])
            outside = reply.get("outside", False)
            if outside and not killed:
                killed = True
                continue
            note = KILLED_TWICE if outside else None
            write_line(1, {"verdict": reply["verdict"], "extracted": reply["extracted"], "note": note})
            left.popleft()
            killed = False


def main() -> None:
    """Load math-verify, announce readiness, and serve groups until stdin ends."""
    from mcgrpo.grade.math_grader import warm_up

    warm_up()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    grader = Grader(timeout=float(sys.argv[1]), memory_mb=int(sys.argv[2]))
    lines = Lines(0)
    try:
        write_line(1, {"ready": True})
        while line := lines.read():
            _grade(grader, json.loads(line))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    finally:
        grader.kill()


if __name__ == "__main__":
    main()
