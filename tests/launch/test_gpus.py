import fcntl
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest
from pretend_machine import PATIENCE_SECONDS, is_alive, wait_until


def test_jobs_that_run_at_once_have_devices_of_their_own(machine):
    assert {machine.start(1).devices(), machine.start(1).devices()} == {"a", "b"}


def test_a_third_job_on_two_devices_waits_for_the_one_that_becomes_free(machine):
    machine.start(1).devices()
    second = machine.start(1)
    freed, third = second.devices(), machine.start(1)
    assert third.waits()
    assert f"{freed}: process {second.process.pid} (sh -c" in third.err.read_text()
    second.kill()
    assert third.devices() == freed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_killed_holder_frees_its_devices(machine, number):
    holder = machine.start(2)
    assert holder.devices() == "a,b"
    holder.process.send_signal(number)
    holder.process.wait()
    after = machine.start(2)
    assert after.devices() == "a,b"
    assert "waits" not in after.err.read_text()


def test_a_device_is_held_as_long_as_a_child_of_its_killed_holder_lives(machine):
    holder = machine.start(2, "sh", "-c", "sleep 600 & echo $!; wait")
    child = int(holder.devices())
    holder.kill()
    after = machine.start(1)
    assert after.waits() and is_alive(child)
    os.kill(child, signal.SIGKILL)
    assert after.devices() in ("a", "b")  # both are free then, one of them first


@pytest.mark.slow
def test_a_job_for_all_devices_is_not_starved_by_a_stream_of_jobs_for_one(machine):
    first = machine.start(1)
    assert first.devices() == "a"
    both = machine.start(2)
    assert both.waits()
    stream = [machine.start(1) for _ in range(3)]
    assert all(job.waits() for job in stream)
    first.kill()
    assert both.devices() == "a,b"
    assert not any(job.out.read_text() for job in stream)
    both.kill()
    assert wait_until(lambda: sorted(job.out.read_text() for job in stream) == ["", "a\n", "b\n"])


@pytest.mark.slow
def test_requests_are_served_in_their_order(machine):
    holder = machine.start(2)
    holder.devices()
    order = machine.folder / "order"
    queue = []
    for place in range(4):
        queue.append(machine.start(2, "sh", "-c", f"echo {place} >> {order}"))
        assert queue[-1].waits()
    holder.kill()
    assert [job.process.wait(PATIENCE_SECONDS) for job in queue] == [0] * 4
    assert order.read_text().split() == ["0", "1", "2", "3"]


def test_a_killed_waiter_leaves_the_queue_and_holds_nothing(machine):
    holder = machine.start(1)
    holder.devices()
    both = machine.start(2)
    assert both.waits()
    behind = machine.start(1)
    assert behind.waits()
    both.kill()
    assert behind.devices() == "b"


def test_who_waits_for_one_device_does_not_hold_up_who_may_only_use_another(machine):
    machine.start(1, CUDA_VISIBLE_DEVICES="a").devices()
    assert machine.start(1, CUDA_VISIBLE_DEVICES="a").waits()
    assert machine.start(1, CUDA_VISIBLE_DEVICES="b").devices() == "b"


def test_who_comes_while_the_first_is_about_to_take_a_device_waits(machine):
    machine.locks.mkdir()
    with (machine.locks / "a.queue").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = machine.start(1)
        assert second.waits()
    assert second.devices() == "a"


def test_ctrl_c_ends_the_wait_without_a_traceback(machine):
    machine.start(2).devices()
    waiter = machine.start(1, "sh", "-c", "echo ran")
    assert waiter.waits()
    waiter.process.send_signal(signal.SIGINT)
    assert waiter.process.wait(PATIENCE_SECONDS) == -signal.SIGINT
    assert "Traceback" not in waiter.err.read_text()


@pytest.mark.slow
def test_no_device_is_ever_shared_whoever_is_killed(machine):
    machine.env["MCGRPO_DEVICES"] = "a,b,c"
    chance, log = random.Random(0), machine.folder / "log"
    tell = f"echo $0 $CUDA_VISIBLE_DEVICES $(date +%s.%N) >> {log}"
    jobs, killed = [], {}
    for number in range(12):
        rest = "exec sleep 600" if number % 3 == 0 else f"sleep 0.{chance.randint(1, 3)}; {tell}"
        jobs.append(machine.start(chance.choice([1, 1, 2, 3]), "sh", "-c", f"{tell}; {rest}", str(number)))
    for number in range(0, 12, 3):
        time.sleep(chance.uniform(0, 1))
        killed[number] = time.time()
        jobs[number].kill()
    for number in set(range(12)) - set(killed):
        assert jobs[number].process.wait(PATIENCE_SECONDS) == 0
    uses = defaultdict(list)
    for number, job_log in entries(log).items():
        names, times = job_log[0][0], [moment for _, moment in job_log]
        for name in names.split(","):
            uses[name].append((times[0], times[1] if len(times) > 1 else max(times[0], killed[number])))
    assert sum(map(len, uses.values())) >= 8
    for spans in map(sorted, uses.values()):
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans)), spans


def entries(log: Path) -> dict[int, list[tuple[str, float]]]:
    """Job -> (devices, time) of its beginning, and of its end if it came to that."""
    found = defaultdict(list)
    for line in log.read_text().splitlines():
        number, names, moment = line.split()
        found[int(number)].append((names, float(moment)))
    return found


NESTED = f"{sys.executable} -m mcgrpo.launch.gpus"
USAGE = "usage: python -m mcgrpo.launch.gpus COUNT PROGRAM [ARGS...]"


@pytest.mark.parametrize(
    ("args", "env", "message"),
    [
        ("3 echo ran", {}, "3 GPUs wanted, this machine has 2: a ("),
        (
            "2 echo ran",
            {"CUDA_VISIBLE_DEVICES": "b"},
            "2 GPUs wanted, CUDA_VISIBLE_DEVICES=b leaves of this machine 1: b (",
        ),
        ("1 echo ran", {"MCGRPO_DEVICES": ""}, "1 GPU wanted, this machine has 0: none\n"),
        *((args, {}, USAGE) for args in ("", "1", "-1 true", "two true", "--help")),
    ],
)
def test_what_cannot_be_had_is_refused_at_once(machine, args, env, message):
    done = machine.run(*args.split(), **env)
    assert (done.returncode, done.stdout) == (1, "") and message in done.stderr
    assert not machine.locks.exists()


def test_a_machine_without_nvidia_smi_has_no_gpus(machine):
    del machine.env["MCGRPO_DEVICES"]
    done = machine.run("1", "echo", "ran", PATH=str(machine.folder))
    assert (done.returncode, done.stderr) == (1, "error: 1 GPU wanted, this machine has 0: none\n")


@pytest.mark.parametrize("command", [f"exec {NESTED} 1 echo ran", f"{NESTED} 1 echo ran; exit $?"])
def test_a_job_within_a_job_is_refused_and_does_not_wait_for_itself(machine, command):
    done = machine.run("1", "sh", "-c", command)
    assert (done.returncode, done.stdout) == (1, "") and "it would wait for ever" in done.stderr
    assert machine.run("1", "sh", "-c", f"{NESTED} 0 echo ran").stdout == "ran\n"


def test_no_device_asked_for_is_none_seen(machine):
    done = machine.run("0", "sh", "-c", 'echo "[${CUDA_VISIBLE_DEVICES-unset}]"', CUDA_VISIBLE_DEVICES="a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert not machine.locks.exists()


def test_the_program_is_run_as_if_by_itself(machine):
    done = machine.run("1", "sh", "-c", 'printf "%s|" "$@"; exit 7', "name", "a b", "--flag", "")
    assert (done.returncode, done.stdout) == (7, "a b|--flag||")
    assert done.stderr.startswith("mcgrpo.launch.gpus: takes a (") and done.stderr.count("\n") == 1
    assert machine.run("1", "sh", "-c", "echo $PPID $CUDA_DEVICE_ORDER").stdout == f"{os.getpid()} PCI_BUS_ID\n"
    assert machine.run("0", "sh", "-c", "kill -PIPE $$; echo ignored").returncode == -signal.SIGPIPE
    missing = machine.run("1", "no-such-program")
    assert missing.returncode == 127 and "mcgrpo.launch.gpus: no-such-program: No such file" in missing.stderr


def test_locks_are_every_users_whatever_the_umask(machine):
    umask = os.umask(0o077)
    try:
        job = machine.start(1, "sh", "-c", "umask; exec sleep 60")
    finally:
        os.umask(umask)
    assert job.devices() == "0077"
    assert machine.locks.stat().st_mode & 0o7777 == 0o1777
    modes = {path.name: path.stat().st_mode & 0o7777 for path in machine.locks.iterdir()}
    assert modes == dict.fromkeys(("a", "a.queue", "b.queue"), 0o666)


def test_the_folder_of_locks_is_kept_from_being_cleaned_up(machine):
    job = machine.start(1)
    job.devices()
    held = ["flock", "--nonblock", "--exclusive", str(machine.locks), "true"]  # what systemd-tmpfiles tries first
    assert subprocess.run(held).returncode == 1
    job.kill()
    assert subprocess.run(held).returncode == 0


def test_no_link_is_followed(machine):
    (victim := machine.folder / "victim").mkdir()
    machine.locks.mkdir()
    (machine.locks / "a").symlink_to(victim / "file")
    assert machine.run("1", "echo", "ran").returncode == 1
    shutil.rmtree(machine.locks)
    machine.locks.symlink_to(victim)
    done = machine.run("1", "echo", "ran")
    assert done.returncode == 1 and f"{machine.locks} is a link or no folder" in done.stderr
    assert not list(victim.iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="giving a folder to another user needs root")
def test_a_folder_of_locks_that_is_another_users_is_refused(machine):
    """Who owns a folder can remove what is in it."""
    machine.locks.mkdir(mode=0o1777)
    os.chown(machine.locks, 65534, 65534)
    done = machine.run("1", "echo", "ran")
    assert done.returncode == 1 and f"{machine.locks} belongs to user 65534" in done.stderr


PRELOADED = """
import ctypes, os, sys, time
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(getenv(b"CUDA_VISIBLE_DEVICES").decode(), os.getpid(), os.getppid(), flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def preloaded(machine):
    """Starts a job on a server of `mcgrpo.launch.preload`."""
    sockets = tempfile.mkdtemp(prefix="pre")  # a socket's path must be short
    machine.env |= {"XDG_RUNTIME_DIR": sockets, "MCGRPO_PRELOAD": "json", "MCGRPO_PRELOAD_IDLE": "600"}
    (machine.folder / "job.py").write_text(PRELOADED)
    machine.env["PYTHONPATH"] += f":{machine.folder}"
    yield lambda count, seconds: machine.start(
        count, sys.executable, "-m", "mcgrpo.launch.preload", "job", str(seconds)
    )
    subprocess.run([sys.executable, "-m", "mcgrpo.launch.preload", "--stop"], env=machine.env, timeout=PATIENCE_SECONDS)
    shutil.rmtree(sockets, ignore_errors=True)


def test_a_job_forked_by_a_server_sees_its_devices_and_its_client_holds_them(machine, preloaded):
    seen, pid, server = preloaded(1, 600).devices().split()
    other = preloaded(1, 0)
    assert (seen, other.devices().split()[::2]) == ("a", ["b", server])
    other.process.wait()
    both = machine.start(2)
    assert both.waits()
    machine.jobs[0].kill()
    assert both.devices() == "a,b"
    assert wait_until(lambda: not is_alive(int(pid))) and is_alive(int(server))
