"""A program beside a server of its own. The server is a stand-in: a real vLLM's is in tests/vllm_cpu/test_beside.py."""

import json
import os
import signal
import sys

import psutil
import pytest
from pretend_machine import Job, gone, wait_until

STAND_IN = """
import os, signal, subprocess, sys, time
engine = subprocess.Popen(["sleep", "600"])  # in the server's session
def end(*_):
    engine.kill()
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if os.environ.get("DEAF") else end)
print("devices:", os.environ["CUDA_VISIBLE_DEVICES"], os.environ["VLLM_SERVER_DEV_MODE"], *sys.argv[1:], flush=True)
if os.environ.get("FAILS"):
    engine.kill()
    sys.exit(3)
while True:  # short sleeps: in Python, a signal that comes just before a long one is handled after it
    time.sleep(0.1)
"""
PROGRAM = """
import os, sys, time
print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["MCGRPO_VLLM_SERVER"], flush=True)
"""


@pytest.fixture
def machine(machine):
    """Two pretend GPUs, and something that is called vllm."""
    package = machine.folder / "path/vllm/entrypoints/openai"
    package.mkdir(parents=True)
    for folder in (package, *list(package.parents)[:2]):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(STAND_IN)
    machine.env["PYTHONPATH"] += f":{machine.folder / 'path'}"
    return machine


def start(machine, program, **environment):
    """A job beside a server, on two GPUs; it and the server's log."""
    log = machine.folder / "logs/vllm.log"
    settings = json.dumps({"model": "some/model", "log": str(log), "max_model_len": 64})
    (machine.folder / "path/job.py").write_text(PROGRAM + program)
    machine.env |= environment
    command = [sys.executable, "-m", "mcgrpo.launch", "--gpus", "1", "--server", settings, "job"]
    machine.jobs.append(job := Job(machine.folder, command, machine.env))
    return job, log


UNTIL_GO = """
while not os.path.exists("go"):
    time.sleep(0.05)
sys.exit(7)
"""
FOREVER = "time.sleep(600)"


def started(job, log):
    """All processes of a job, once program, server and engine run."""
    assert wait_until(lambda: job.out.read_text() and log.exists() and "devices" in log.read_text())
    found = psutil.Process(job.process.pid).children(recursive=True)
    assert len(found) >= 3
    return found


@pytest.mark.slow
def test_each_has_gpus_of_its_own_and_the_server_ends_with_the_program_whose_exit_code_is_the_jobs(machine):
    job, log = start(machine, UNTIL_GO)
    processes = started(job, log)
    (machine.folder / "go").touch()
    assert job.process.wait(60) == 7 and gone(processes)
    devices, address = job.out.read_text().split()
    _, theirs, mode, *options = log.read_text().split()
    assert (devices, theirs, mode) == ("a", "b", "1")
    assert address == f"http://127.0.0.1:{options[options.index('--port') + 1]}"
    assert options[options.index("--model") + 1] == "some/model" and "--gpu-memory-utilization" not in options


def test_a_server_that_fails_takes_its_program_along_and_is_named(machine):
    job, log = start(machine, FOREVER, FAILS="yes")
    assert job.process.wait(60) == -signal.SIGTERM
    assert f"error: the vLLM server ended (exit code 3), see {log}" in job.err.read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, -2), (signal.SIGKILL, -9)])
def test_nothing_is_left_of_a_job_that_is_stopped_and_its_gpus_are_free(machine, number, code):
    job, log = start(machine, FOREVER)
    processes = started(job, log)
    os.kill(job.process.pid, number)
    assert job.process.wait(60) == code and gone(processes)
    assert machine.start(2).devices() == "a,b"


def test_a_server_that_does_not_end_is_killed_with_its_processes(machine):
    machine.env["PYTHONPATH"] = f"{machine.folder}:{machine.env['PYTHONPATH']}"
    (machine.folder / "sitecustomize.py").write_text("from mcgrpo.launch import server; server.STOP_SECONDS = 0.5")
    job, log = start(machine, FOREVER, DEAF="yes")
    processes = started(job, log)
    job.kill()
    assert gone(processes)
