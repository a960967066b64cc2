"""Calls of `make`: after one that was killed the next goes on, beside one that runs it is refused."""

import os
import signal
import subprocess
import sys
import time

import pytest
from filelock import FileLock, Timeout
from pretend_machine import PATIENCE_SECONDS, ROOT, is_alive, wait_until

from mcgrpo.launch import calls, environment

pytestmark = pytest.mark.slow

FLOW = """
from mcgrpo.launch import calls
if workflow.is_main_process:
    calls.begin(["one.yaml"])  # as ours does
    print(calls.beside(["one.yaml"]), flush=True)
rule made:
    output: "made.txt"
    shell: "echo $$ > pid.part && mv pid.part pid; while ! [ -e go ]; do sleep 0.1; done; touch made.txt"
"""


class Place:
    """A folder with a workflow of one job, which ends once it may."""

    def __init__(self, folder):
        self.folder, self.started = folder, []
        for name, text in {"Snakefile": FLOW, "one.yaml": "{}", "other.yaml": "{}"}.items():
            (folder / name).write_text(text)

    def start(self, file="one.yaml", by=(sys.executable, "-m", "mcgrpo.launch.calls")):
        words = [
            *by,
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "1",
            "--rerun-incomplete",
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        call = subprocess.Popen([*words, "--configfile", file, "--", "made.txt"], cwd=self.folder, env=env, **pipes)
        self.started.append(call)
        return call

    def until_its_job_runs(self):
        assert wait_until((self.folder / "pid").exists)
        return int((self.folder / "pid").read_text())

    def may_end(self):
        (self.folder / "go").touch()

    def left(self):
        return [*(self.folder / calls.FOLDER).glob("*.json")]


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    place.may_end()
    for call in place.started:
        if call.poll() is None:
            os.killpg(call.pid, signal.SIGKILL)
            call.wait(PATIENCE_SECONDS)


def said_by(call):
    return call.communicate(timeout=PATIENCE_SECONDS)[0]


def killed(place):
    """A call that was killed with its job."""
    call = place.start()
    place.until_its_job_runs()
    os.killpg(call.pid, signal.SIGKILL)
    call.wait(PATIENCE_SECONDS)
    (place.folder / "pid").unlink()
    return call


def test_after_a_call_that_was_killed_the_next_goes_on(place):
    first = killed(place)
    place.may_end()
    second = place.start()
    said = said_by(second)
    assert second.returncode == 0 and (place.folder / "made.txt").exists(), said
    assert f"process {first.pid} was killed: its lock is removed" in said
    assert place.left() == []


IMPATIENT = (sys.executable, "-c", "from mcgrpo.launch import calls; calls.DYING_SECONDS = 1; calls.main()")


def test_while_a_job_of_it_lives_it_does_not(place):
    first = place.start()
    job = place.until_its_job_runs()
    first.kill()
    first.wait(PATIENCE_SECONDS)
    second = place.start(by=IMPATIENT)
    said = said_by(second)
    assert second.returncode == 1 and "nlock" not in said, said
    assert said.startswith(f"error: process {first.pid} was killed, and jobs of it run (processes ")
    assert str(job) in said and said.count("\n") == 1
    place.may_end()
    assert wait_until(lambda: not is_alive(job))
    third = place.start()
    assert "its lock is removed" in said_by(third) and third.returncode == 0


def test_a_second_call_while_the_first_runs_is_refused_and_not_told_to_unlock(place):
    first = place.start()
    place.until_its_job_runs()
    second = place.start()
    said = said_by(second)
    assert second.returncode == 1 and said.count("\n") == 1, said
    assert said.startswith(f"error: process {first.pid} makes this study in this folder: wait until it has ended")
    place.may_end()
    assert "1 of 1 steps (100%) done" in said_by(first) and first.returncode == 0
    assert place.left() == []


def test_a_second_call_of_snakemake_itself_says_first_who_runs(place):
    first = place.start()
    place.until_its_job_runs()
    said = said_by(place.start(by=()))
    assert f"process {first.pid} makes this study in this folder: wait until it has ended" in said
    assert said.index("makes this study") < said.index("Directory cannot be locked")
    place.may_end()
    assert f"process {first.pid}" not in said_by(first) and first.returncode == 0


def test_a_call_that_was_killed_is_not_cleared_up_after_while_another_runs(place):
    first = killed(place)
    (place.folder / "made.txt").write_text("")  # nothing to do, so that it takes no lock
    waiting = holding(place, "other.yaml")
    said = said_by(place.start(by=IMPATIENT))
    assert f"process {first.pid} was killed, and process {waiting.pid} runs here: call again" in said
    waiting.communicate(timeout=PATIENCE_SECONDS)
    assert len(place.left()) == 1


def test_what_a_killed_call_has_started_and_is_about_to_end_is_waited_for(place):
    """Such as `snakemake --unlock`, whose launcher was killed while it waited."""
    first = killed(place)
    ending = holding(place, "one.yaml")
    place.may_end()
    second = place.start()
    assert wait_until(lambda: is_held(place.folder / ".snakemake/calls/.lock"))
    time.sleep(1)  # ten times as long as it takes to see that nothing is about to end
    assert second.poll() is None
    ending.communicate(timeout=PATIENCE_SECONDS)
    said = said_by(second)
    assert second.returncode == 0 and f"process {first.pid} was killed: its lock is removed" in said, said


def is_held(lock):
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True


def holding(place, file):
    """A process that is a call for a study of this file, until its input ends."""
    call = [
        sys.executable,
        "-c",
        "import sys; from mcgrpo.launch import calls; calls.begin([sys.argv[1]]); sys.stdin.read()",
    ]
    process = subprocess.Popen([*call, file], cwd=place.folder, stdin=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert wait_until(lambda: len(place.left()) == 2)
    return process


def test_a_lock_that_cannot_be_removed_is_said_with_the_reason(place):
    first = killed(place)
    (place.folder / "Snakefile").write_text("rule of: nothing\n")
    call = place.start()
    said = said_by(call)
    assert call.returncode == 1 and f"process {first.pid} was killed, and its lock could not be removed: " in said, said
    assert "Directory cannot be locked" not in said and len(place.left()) == 1


def test_one_of_another_machine_is_left_alone(place):
    killed(place)
    (file,) = place.left()
    file.rename(file.with_name("elsewhere-1.json"))
    call = place.start()
    said = said_by(call)
    assert call.returncode == 1 and "process 1 on elsewhere has not ended well" in said
    assert "Directory cannot be locked" in said and len(place.left()) == 1


@pytest.mark.parametrize("files", [["config/config.yaml"], ["config/config.yaml", "config/rehearsal.yaml"]])
def test_a_call_and_its_snakemake_name_a_study_alike(files, monkeypatch):
    """Else a second call of `make paper` would not be told that the first makes it."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    of_call = calls.study_files(["snakemake", "--configfile", *files, "--resources", "gpu=2"])
    assert environment.prepare({}, [ROOT / file for file in files]) == of_call == files[1:]
