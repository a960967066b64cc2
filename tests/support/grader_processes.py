"""Verifiers that start quickly, and what they judge."""

import sys

import pytest

from mcgrpo.grade.verifier import Verifier

PATIENCE_SECONDS = 60
"""For what is killed after half a second, and would go on for ever."""
TOWER = "\\boxed{9^{9^{9^{9}}}}"
linux = pytest.mark.skipif(sys.platform != "linux", reason="graders are limited on Linux only")
COLD = "from mcgrpo.grade import math_grader, verify_worker; math_grader.warm_up = lambda: None; verify_worker.main()"


def cold(workers=1, **limits):
    """A verifier that starts in a third of the time: the first answers that it reads take longer."""
    verifier = Verifier(workers, **limits)
    verifier._command[2:4] = ["-c", COLD]
    return verifier


def one(verifier, answer, completion, solution=""):
    return verifier.judge([answer], [solution], [completion])[0]
