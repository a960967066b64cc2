"""The processes of a verifier: those that run, and their time."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mcgrpo.grade.verifier import Verifier

PATIENCE_SECONDS = 60
"""For what is killed after half a second, and would go on for ever."""
TOWER = "\\boxed{9^{9^{9^{9}}}}"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


COLD = "from mcgrpo.grade import math_grader, verify_worker; math_grader.warm_up = lambda: None; verify_worker.main()"


def cold(workers=1, **limits):
    """A verifier whose workers start in a third of the time: the first answers that they read take longer."""
    verifier = Verifier(workers, **limits)
    for worker in verifier._all:
        worker._command[2:4] = ["-c", COLD]
    return verifier


def one(verifier, answer, completion, solution=""):
    return verifier.judge([answer], [solution], [completion])[0]


def below(pid):
    """The processes below one, as {pid: state}."""
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        rows[int(path.parent.name)] = (int(parent), state)
    found = [pid]
    for one in found:
        found += [child for child, (parent, _) in rows.items() if parent == one]
    return {child: rows[child][1] for child in found[1:]}


def processor_seconds(verifier):
    """Of all its processes, those that have ended included: unlike the clock, the same on a busy machine."""
    seconds = 0.0
    for worker in verifier._all:
        for pid in (worker._process.pid, *below(worker._process.pid)):
            with suppress(OSError):  # replaced just now: its parent counts it
                times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
                seconds += sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return seconds
