"""Real processes on pretend devices: a job runs when it has written which devices it sees."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from mcgrpo.launch import gpus

PATIENCE_SECONDS = 300
"""For what takes a second on a quiet machine."""
ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join((str(ROOT), str(ROOT / "tests/support")))


def wait_until(condition, seconds=PATIENCE_SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def line_of(process: subprocess.Popen) -> str:
    """The next line that it prints; without one in time it is killed."""
    timer = threading.Timer(PATIENCE_SECONDS, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(processes: list[psutil.Process]) -> bool:
    return wait_until(lambda: not any(is_alive(each.pid) for each in processes))


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
        assert wait_until(lambda: "waits for" in self.err.read_text())
        return not wait_until(self.out.read_text, 2 * gpus.POLL_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE_SECONDS)


class Machine:
    """Pretend devices, with a folder of locks of their own; its jobs end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.locks, self.jobs = folder, folder / "locks", []
        self.env = os.environ | {"PYTHONPATH": PATH, "MCGRPO_LOCKS": str(self.locks), "MCGRPO_DEVICES": "a,b"}
        for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
            self.env.pop(name, None)

    def start(self, count: int, module: str = "holds_gpus", *args: str, **env: str) -> Job:
        ours = [sys.executable, "-m", "mcgrpo.launch", "--gpus", str(count), module, *args]
        self.jobs.append(job := Job(self.folder, ours, self.env | env))
        return job

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mcgrpo.launch", *args]
        return subprocess.run(command, env=self.env | env, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
