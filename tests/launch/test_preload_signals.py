"""Real servers and clients: how a job ends with its client, its server or by a signal."""

import os
import signal
import subprocess

import pytest
from pretend_machine import PATIENCE_SECONDS, ROOT, is_alive, wait_until

pytestmark = pytest.mark.slow

# Short sleeps: in Python, a signal that comes just before a long one is handled after it.
SLEEPER = """
    import os, subprocess, time
    child = subprocess.Popen(["sleep", "600"])
    print(os.getppid(), os.getpid(), child.pid, flush=True)
    while True:
        time.sleep(0.1)
"""


def start_sleeper(place) -> tuple[subprocess.Popen[str], int, list[int]]:
    place.write(SLEEPER)
    client = place.start("job")
    server, *pids = map(int, client.stdout.readline().split())
    return client, server, pids


def test_a_job_dies_with_its_client(place):
    client, server, pids = start_sleeper(place)
    client.kill()
    assert wait_until(lambda: not any(map(is_alive, pids)))
    assert place.server() == server


def test_a_job_fails_with_its_server(place):
    client, server, pids = start_sleeper(place)
    os.kill(server, signal.SIGKILL)
    _, stderr = client.communicate(timeout=PATIENCE_SECONDS)
    assert client.returncode == 1
    assert "the server died while job ran" in stderr
    assert wait_until(lambda: not any(map(is_alive, pids)))
    assert place.server() not in (server, client.pid)  # the socket left behind is no obstacle


def test_ctrl_c_reaches_the_job_and_its_children(place):
    client, _, pids = start_sleeper(place)
    client.send_signal(signal.SIGINT)
    _, stderr = client.communicate(timeout=PATIENCE_SECONDS)
    assert client.returncode == 130
    assert "KeyboardInterrupt" in stderr
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_a_signal_is_forwarded_to_the_job(place):
    place.write("""
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        print("ready", flush=True)
        while True:
            time.sleep(0.1)
    """)
    client = place.start("job")
    assert client.stdout.readline() == "ready\n"
    client.terminate()
    assert client.wait(timeout=PATIENCE_SECONDS) == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_before_a_job_has_begun_a_signal_ends_its_client_and_it_never_begins(place, number):
    importing, go = place.folder / "importing", place.folder / "go"
    place.write(
        f"""
        import pathlib, time
        pathlib.Path({str(importing)!r}).touch()
        while not pathlib.Path({str(go)!r}).exists():
            time.sleep(0.01)
    """,
        "slow",
    )
    place.write("import pathlib; pathlib.Path('begun').touch()")
    slow = {"MCGRPO_PRELOAD": "slow", "PYTHONPATH": f"{ROOT}:{place.folder}"}
    client = place.start("job", **slow)
    assert wait_until(importing.exists)
    client.send_signal(number)
    assert client.wait(timeout=PATIENCE_SECONDS) == -number
    go.touch()
    place.write("pass", "other")
    assert place.run("other", **slow).returncode == 0  # after it in the server's queue
    assert not (place.folder / "begun").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_job_killed_by_a_signal_says_so(place, number):
    place.write(f"import os; os.kill(os.getpid(), {int(number)})")
    done = place.run("job")
    assert done.returncode == 128 + number
    assert done.stderr == f"mcgrpo.launch.preload: job was killed by {number.name}\n"
