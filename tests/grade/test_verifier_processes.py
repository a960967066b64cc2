"""Processes of a verifier that are killed, stopped, forked or cannot start."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path

import psutil
import pytest
from grader_processes import TOWER, cold, linux, one
from pretend_machine import gone, wait_until

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench.hostile import descendants, processor_seconds
from mcgrpo.grade import verifier as verifier_module
from mcgrpo.grade.task import Judgement
from mcgrpo.grade.verifier import Verifier, WorkerError

pytestmark = pytest.mark.slow
by_pid = attrgetter("pid")


@linux
@pytest.mark.parametrize("level", [0, 1])
def test_a_dead_process_is_replaced(level):
    others = descendants()
    with cold(timeout=20) as fragile:
        assert one(fragile, "5", "\\boxed{5}").verdict == "correct"
        supervisor_and_grader = sorted(descendants() - others, key=by_pid)
        supervisor_and_grader[level].kill()
        verdicts = [j.verdict for j in fragile.judge(["5"] * 3, [""] * 3, ["\\boxed{4}", "\\boxed{5}", "\\boxed{6}"])]
        assert verdicts == ["wrong", "correct", "wrong"]
        assert one(fragile, "5", "\\boxed{5}").verdict == "correct"


@contextmanager
def killing(level, times, after=0.0):
    """Kill the processes of a level below this one (0: supervisors, 1: graders) after some seconds of CPU time."""
    others, killed, over = descendants(), set(), threading.Event()

    def is_due(process):
        return (process.ppid() != os.getpid()) == level and sum(process.cpu_times()[:2]) >= after

    def kill():
        while not over.wait(0.005) and len(killed) < times:
            for process in descendants() - others - killed:
                with suppress(psutil.NoSuchProcess):
                    if is_due(process):
                        process.kill()
                        killed.add(process)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join(300)


@linux
@pytest.mark.parametrize("level", [0, 1])
def test_a_process_killed_at_work_is_asked_again(level):
    others = descendants()
    with Verifier(1, timeout=3) as fragile:
        one(fragile, "5", "\\boxed{5}")
        supervisor_and_grader, spent = sorted(descendants() - others, key=by_pid), processor_seconds(fragile)

        def kill():
            while processor_seconds(fragile) < spent + 0.3:
                time.sleep(0.01)
            supervisor_and_grader[level].kill()
            killed.append(level)

        killed, thread = [], threading.Thread(target=kill)
        thread.start()
        judged = fragile.judge(["5"] * 2, [""] * 2, [TOWER, "\\boxed{5}"])
        thread.join(300)
        assert killed and [one.verdict for one in judged] == ["timeout", "correct"]


@linux
def test_a_grader_killed_twice_over_one_completion_is_an_error_of_that_one():
    with cold(timeout=20) as fragile, killing(1, times=2, after=1) as killed:
        judged = fragile.judge(["5"] * 2, [""] * 2, [TOWER, "\\boxed{5}"])
        assert len(killed) == 2
    assert judged == [Judgement("error", None), Judgement("correct", "5")]


@linux
def test_a_worker_that_is_killed_at_its_start_is_started_again_twice():
    """And then it is an error, and no verdict."""
    with cold(timeout=20) as fragile, killing(0, times=2) as killed:
        assert one(fragile, "5", "\\boxed{5}").verdict == "correct"
        assert len(killed) == 2
    with cold(timeout=20) as fragile, killing(0, times=10**6) as killed:
        with pytest.raises(WorkerError, match="killed 3 times"):
            one(fragile, "5", "\\boxed{5}")
        assert len(killed) == 3


@linux
def test_a_call_that_a_signal_ends_waits_for_no_completion():
    class EndedError(Exception):
        pass

    def end(*_):
        raise EndedError

    before = signal.signal(signal.SIGALRM, end)
    try:
        with cold(workers=2, timeout=600) as verifier:
            verifier.start()
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            begun = time.monotonic()
            with pytest.raises(EndedError):
                verifier.judge(["1"] * 99, [""] * 99, [f"$\\boxed{{100000000! + {n}}}$" for n in range(99)])
            assert time.monotonic() - begun < 300
            assert one(verifier, "2", "\\boxed{2}").verdict == "correct"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_nothing_is_left_behind():
    before = descendants()
    with cold(workers=2, timeout=0.3) as brief:
        brief.judge(["5", "6"], ["", ""], [TOWER, "\\boxed{6}"])
        assert len(descendants()) > len(before)
    assert descendants() == before


@linux
def test_graders_that_wait_end_with_their_supervisor():
    others = descendants()
    with cold(workers=2) as verifier:
        verifier.judge(list("5678"), [""] * 4, [f"\\boxed{{{n}}}" for n in "5678"])
        supervisor, *graders = sorted(descendants() - others, key=by_pid)
        supervisor.kill()
        assert len(graders) == 2 and gone(graders)


@linux
@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "os.kill(os.getpid(), 9)", "1 / 0"])
def test_workers_end_with_their_parent(end):
    code = (
        f"import os, sys, threading, time; sys.path.insert(0, {str(Path(__file__).parents[1] / 'support')!r})\n"
        "from grader_processes import cold\n"
        "verifier = cold(timeout=1); verifier.start(); print(verifier._process.pid, flush=True)\n"
        f"threading.Thread(target=verifier.judge, args=(['5'], [''], [{TOWER!r}]), daemon=True).start()\n"
        f"time.sleep(0.3); {end}"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: not _group_lives(int(done.stdout)))


def _group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_script_without_a_main_guard_grades(tmp_path):
    (tmp_path / "script.py").write_text(
        "print('begun')\n"
        "from mcgrpo.rewards import reward_functions\n"
        "(accuracy,) = reward_functions('math', ['accuracy'])\n"
        "print(accuracy([r'\\boxed{2}', r'\\boxed{3}'], answer=['2', '2']))\n"
    )
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "begun\n[2.0, 0.0]\n"), done.stderr


def test_a_forked_child_has_workers_of_its_own():
    parent = verifier_module.shared()
    assert one(parent, "5", "\\boxed{5}").verdict == "correct"
    child = os.fork()
    if not child:
        try:
            mine = verifier_module.shared()
            right = mine is not parent and one(mine, "5", "\\boxed{5}").verdict == "correct"
            mine.close()
        finally:
            os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one(parent, "6", "\\boxed{6}").verdict == "correct"
    parent.close()


def test_a_worker_that_cannot_start_is_an_error_not_a_zero(monkeypatch):
    broken = Verifier(1)
    monkeypatch.setattr(broken, "_command", [sys.executable, "-c", "import no_such_module"])
    with pytest.raises(WorkerError, match="did not start"):
        one(broken, "5", "\\boxed{5}")
