"""Real processes on pretend devices: a job runs when it has written which devices it sees."""

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

from mcgrpo import gpus
from mcgrpo.parents import HOLDER

ROOT = Path(__file__).parents[1]
SLEEP = "echo $CUDA_VISIBLE_DEVICES; exec sleep 60"
LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-5d2a7c11-0000-0000-0000-000000000000)
GPU 1: NVIDIA H200 (UUID: GPU-5d2a9f22-0000-0000-0000-000000000000)
GPU 2: NVIDIA A100 (UUID: GPU-e81b0c33-0000-0000-0000-000000000000)
"""
DIVIDED = """\
GPU 0: NVIDIA H200 (UUID: GPU-5d2a7c11-0000-0000-0000-000000000000)
  MIG 3g.71gb     Device  0: (UUID: MIG-c6d4f1ef-0000-0000-0000-000000000000)
  MIG 3g.71gb     Device  1: (UUID: MIG-cba663e8-0000-0000-0000-000000000000)
GPU 1: NVIDIA H200 (UUID: GPU-5d2a9f22-0000-0000-0000-000000000000)
"""


def wait_until(condition) -> bool:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Job:
    def __init__(self, folder: Path, command: list[str], env: dict[str, str]) -> None:
        self.out, self.err = (Path(tempfile.mkstemp(dir=folder, suffix=suffix)[1]) for suffix in (".out", ".err"))
        with self.out.open("w") as out, self.err.open("w") as err:
            options = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "start_new_session": True}
            self.process = subprocess.Popen(command, env=env, cwd=folder, **options)

    def devices(self) -> str:
        assert wait_until(lambda: "\n" in self.out.read_text()), self.err.read_text()
        return self.out.read_text().splitlines()[0]

    def waits(self) -> bool:
        return wait_until(lambda: "waits for" in self.err.read_text()) and not self.runs_within(2 * gpus.POLL_SECONDS)

    def runs_within(self, seconds: float) -> bool:
        time.sleep(seconds)
        return self.out.read_text() != ""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Machine:
    """Pretend devices, with a folder of locks of their own; its jobs end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.locks, self.jobs = folder, folder / "locks", []
        self.env = os.environ | {"PYTHONPATH": str(ROOT), "MCGRPO_LOCKS": str(self.locks), "MCGRPO_DEVICES": "a,b"}
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", HOLDER):
            self.env.pop(name, None)

    def start(self, count: int, *command: str, **env: str) -> Job:
        ours = [sys.executable, "-m", "mcgrpo.gpus", str(count), *(command or ("sh", "-c", SLEEP))]
        self.jobs.append(job := Job(self.folder, ours, self.env | env))
        return job

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mcgrpo.gpus", *args]
        return subprocess.run(command, env=self.env | env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    yield machine
    for job in machine.jobs:
        job.end()


@pytest.fixture
def listed(monkeypatch, tmp_path):
    """A machine whose nvidia-smi lists what a test says, and which GPUs CUDA_VISIBLE_DEVICES leaves of it."""

    def visible(value: str | None, listing: str = LISTING) -> list[str]:
        script = tmp_path / "nvidia-smi"
        script.write_text(f"#!/bin/sh\n[ \"$*\" = -L ] || exit 9\ncat <<'end'\n{listing}end\n")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("MCGRPO_DEVICES", raising=False)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if value is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        return [f"{each.visible} {each.uuid[:12]}" for each in gpus.devices()]

    return visible


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
    holder = machine.start(2, "sh", "-c", "sleep 60 & echo $!; wait")
    child = int(holder.devices())
    holder.kill()
    after = machine.start(1)
    assert after.waits() and is_alive(child)
    os.kill(child, signal.SIGKILL)
    assert after.devices() == "a"


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


def test_requests_are_served_in_their_order(machine):
    holder = machine.start(2)
    holder.devices()
    order = machine.folder / "order"
    queue = []
    for place in range(4):
        queue.append(machine.start(2, "sh", "-c", f"echo {place} >> {order}"))
        assert queue[-1].waits()
    holder.kill()
    assert [job.process.wait(30) for job in queue] == [0] * 4
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
    assert waiter.process.wait(30) == -signal.SIGINT
    assert "Traceback" not in waiter.err.read_text()


@pytest.mark.slow
def test_no_device_is_ever_shared_whoever_is_killed(machine):
    machine.env["MCGRPO_DEVICES"] = "a,b,c"
    chance, log = random.Random(0), machine.folder / "log"
    tell = f"echo $0 $CUDA_VISIBLE_DEVICES $(date +%s.%N) >> {log}"
    jobs, killed = [], {}
    for number in range(12):
        rest = "exec sleep 60" if number % 3 == 0 else f"sleep 0.{chance.randint(1, 3)}; {tell}"
        jobs.append(machine.start(chance.choice([1, 1, 2, 3]), "sh", "-c", f"{tell}; {rest}", str(number)))
    for number in range(0, 12, 3):
        time.sleep(chance.uniform(0, 1))
        killed[number] = time.time()
        jobs[number].kill()
    for number in set(range(12)) - set(killed):
        assert jobs[number].process.wait(60) == 0
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


def test_more_devices_than_there_are_is_refused_at_once(machine):
    done = machine.run("3", "echo", "ran")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mcgrpo.gpus: 3 GPUs wanted, this machine has 2: a (")
    done = machine.run("2", "echo", "ran", CUDA_VISIBLE_DEVICES="b")
    assert (done.returncode, done.stdout) == (1, "")
    assert "2 GPUs wanted, CUDA_VISIBLE_DEVICES=b leaves of this machine 1: b (" in done.stderr
    assert not machine.locks.exists()


def test_a_machine_without_gpus_says_so(machine):
    done = machine.run("1", "echo", "ran", MCGRPO_DEVICES="")
    assert (done.returncode, done.stderr) == (1, "mcgrpo.gpus: 1 GPU wanted, this machine has 0: none\n")
    del machine.env["MCGRPO_DEVICES"]
    done = machine.run("1", "echo", "ran", PATH=str(machine.folder))
    assert (done.returncode, done.stderr) == (1, "mcgrpo.gpus: 1 GPU wanted, this machine has 0: none\n")


def test_a_job_within_a_job_is_refused_and_does_not_wait_for_itself(machine):
    nested = f"{sys.executable} -m mcgrpo.gpus"
    for command in (f"exec {nested} 1 echo ran", f"{nested} 1 echo ran; exit $?"):
        done = machine.run("1", "sh", "-c", command)
        assert (done.returncode, done.stdout) == (1, "")
        assert "it would wait for ever" in done.stderr
    assert machine.run("1", "sh", "-c", f"{nested} 0 echo ran").stdout == "ran\n"


def test_no_device_asked_for_is_none_seen(machine):
    done = machine.run("0", "sh", "-c", 'echo "[${CUDA_VISIBLE_DEVICES-unset}]"', CUDA_VISIBLE_DEVICES="a")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert not machine.locks.exists()


def test_the_program_is_run_as_if_by_itself(machine):
    done = machine.run("1", "sh", "-c", 'printf "%s|" "$@"; exit 7', "name", "a b", "--flag", "")
    assert (done.returncode, done.stdout) == (7, "a b|--flag||")
    assert done.stderr.startswith("mcgrpo.gpus: takes a (") and done.stderr.count("\n") == 1
    assert machine.run("1", "sh", "-c", "echo $PPID $CUDA_DEVICE_ORDER").stdout == f"{os.getpid()} PCI_BUS_ID\n"
    assert machine.run("0", "sh", "-c", "kill -PIPE $$; echo ignored").returncode == -signal.SIGPIPE
    missing = machine.run("1", "no-such-program")
    assert (missing.returncode, missing.stderr.splitlines()[1:]) == (
        127,
        ["mcgrpo.gpus: no-such-program: No such file or directory"],
    )


@pytest.mark.parametrize("args", [(), ("1",), ("-1", "true"), ("two", "true"), ("--help",)])
def test_usage(machine, args):
    done = machine.run(*args)
    assert (done.returncode, done.stderr) == (1, "usage: python -m mcgrpo.gpus COUNT PROGRAM [ARGS...]\n")


def test_locks_are_every_users_whatever_the_umask(machine):
    os.umask(umask := os.umask(0o077))
    try:
        os.umask(0o077)
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


def test_a_lock_that_is_a_link_is_not_followed(machine):
    machine.locks.mkdir()
    (victim := machine.folder / "victim").write_text("text")
    (machine.locks / "a").symlink_to(victim)
    assert machine.run("1", "echo", "ran").returncode == 1
    assert victim.read_text() == "text"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["0 GPU-5d2a7c11", "1 GPU-5d2a9f22", "2 GPU-e81b0c33"]),
        ("2, 0", ["2 GPU-e81b0c33", "0 GPU-5d2a7c11"]),
        ("GPU-e81b0c33-0000-0000-0000-000000000000", ["GPU-e81b0c33-0000-0000-0000-000000000000 GPU-e81b0c33"]),
        ("GPU-e8,GPU-5d2a9", ["GPU-e8 GPU-e81b0c33", "GPU-5d2a9 GPU-5d2a9f22"]),
        ("1,-1,0", ["1 GPU-5d2a9f22"]),
        ("", []),
        ("NoDevFiles", []),
    ],
)
def test_devices_are_those_that_cuda_would_show(listed, value, expected):
    assert listed(value) == expected


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("0,7", "7 names no device"),
        ("GPU-5d2a", "GPU-5d2a names several devices"),
        ("0,GPU-5d2a7", "GPU-5d2a7 names a device twice"),
        ("MIG-c6d4", "MIG-c6d4 names no device"),
    ],
)
def test_a_name_that_cuda_would_not_take_is_refused(listed, value, fault):
    with pytest.raises(
        gpus.DeviceError, match=f"CUDA_VISIBLE_DEVICES={value}: {fault} of this machine: 0 .NVIDIA H200"
    ):
        listed(value)


def test_a_divided_gpu_counts_as_its_parts(listed):
    parts = [f"MIG-{start}-0000-0000-0000-000000000000 MIG-{start}" for start in ("c6d4f1ef", "cba663e8")]
    assert listed(None, DIVIDED) == [*parts, "1 GPU-5d2a9f22"]
    assert listed("MIG-cb,1", DIVIDED) == ["MIG-cb MIG-cba663e8", "1 GPU-5d2a9f22"]
    assert gpus.devices()[0].name == "NVIDIA H200 MIG 3g.71gb     Device  1"


def test_one_device_under_two_names_is_one_lock(machine, listed):
    listed(None)
    del machine.env["MCGRPO_DEVICES"]
    machine.env["PATH"] = os.environ["PATH"]
    machine.start(1, CUDA_VISIBLE_DEVICES="1").devices()
    assert machine.start(1, CUDA_VISIBLE_DEVICES="GPU-5d2a9").waits()


def test_nvidia_smi_that_fails_is_told(machine):
    script = machine.folder / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 'Driver/library version mismatch'; exit 18\n")
    script.chmod(0o755)
    del machine.env["MCGRPO_DEVICES"]
    done = machine.run("1", "echo", "ran", PATH=f"{machine.folder}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "mcgrpo.gpus: nvidia-smi -L failed (18): Driver/library version mismatch\n"


PRELOADED = """
import ctypes, os, sys, time
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(getenv(b"CUDA_VISIBLE_DEVICES").decode(), os.getpid(), os.getppid(), flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def preloaded(machine):
    """Starts a job on a server of `mcgrpo.preload`."""
    sockets = tempfile.mkdtemp(prefix="pre")  # a socket's path must be short
    machine.env |= {"XDG_RUNTIME_DIR": sockets, "MCGRPO_PRELOAD": "json", "MCGRPO_PRELOAD_IDLE": "60"}
    (machine.folder / "job.py").write_text(PRELOADED)
    machine.env["PYTHONPATH"] += f":{machine.folder}"
    yield lambda count, seconds: machine.start(count, sys.executable, "-m", "mcgrpo.preload", "job", str(seconds))
    subprocess.run([sys.executable, "-m", "mcgrpo.preload", "--stop"], env=machine.env, timeout=60)
    shutil.rmtree(sockets, ignore_errors=True)


def test_a_job_forked_by_a_server_sees_its_devices_and_its_client_holds_them(machine, preloaded):
    seen, pid, server = preloaded(1, 60).devices().split()
    other = preloaded(1, 0)
    assert (seen, other.devices().split()[::2]) == ("a", ["b", server])
    other.process.wait()
    both = machine.start(2)
    assert both.waits()
    machine.jobs[0].kill()
    assert both.devices() == "a,b"
    assert wait_until(lambda: not is_alive(int(pid))) and is_alive(int(server))


WORKER = """
import os, time
from mcgrpo.parents import die_with_parent
die_with_parent()
print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_a_worker_dies_with_its_parent_whatever_that_dies_of(machine):
    worker = [sys.executable, "-c", WORKER]
    parent = f"import subprocess; subprocess.run({worker}, check=True)"
    job = machine.start(1, sys.executable, "-c", parent)
    pid = int(job.devices())
    assert is_alive(pid)
    job.kill()
    assert wait_until(lambda: not is_alive(pid))


def test_a_worker_whose_parent_died_before_it_could_ask_ends(machine):
    orphan = f"{sys.executable} -c '{WORKER}' > orphan.out 2> orphan.err; echo $? > code"
    parent = machine.start(1, "sh", "-c", f"(while kill -0 $$ 2>&-; do sleep 0.01; done; {orphan}) & echo begun")
    assert (parent.devices(), parent.process.wait(30)) == ("begun", 0)
    code = machine.folder / "code"
    assert wait_until(lambda: code.exists() and code.read_text())
    assert (code.read_text(), (machine.folder / "orphan.out").read_text()) == ("1\n", "")
    assert f"process {parent.process.pid}, which started this one" in (machine.folder / "orphan.err").read_text()


@pytest.mark.slow
def test_the_workers_of_a_killed_torchrun_die_and_their_devices_are_free(machine):
    (machine.folder / "worker.py").write_text(WORKER)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "worker.py")
    job = machine.start(2, sys.executable, *launch)
    assert wait_until(lambda: len(job.out.read_text().splitlines()) == 2), job.err.read_text()
    workers = [int(line) for line in job.out.read_text().splitlines()]
    job.kill()
    assert wait_until(lambda: not any(map(is_alive, workers)))
    assert machine.start(2).devices() == "a,b"
