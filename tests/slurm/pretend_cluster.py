"""A real SLURM of three machines that are all this one, with two pretend GPUs each, for as long as the tests take."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ETC = Path("/etc/slurm")  # SLURM_CONF would not be passed on to jobs
HOSTS = Path("/etc/hosts")
MUNGE_PID = Path("/run/munge/munged.pid")
NODES = ("pretend1", "pretend2", "pretend3")
PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")


class Launch(NamedTuple):
    """A process that SLURM started: `step` is `batch` for the job's script, else the number of its srun."""

    job: str
    step: str
    task: str
    gpus: int


def missing() -> str | None:
    """Why there can be no pretend cluster here, if there cannot."""
    if os.geteuid():
        return "SLURM's daemons are started by root"
    if absent := [program for program in PROGRAMS if not shutil.which(program)]:
        return f"no {', '.join(absent)} on the PATH: `apt-get install slurm-wlm munge` (Debian)"
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "snakemake-executor-plugin-slurm is not installed here: `make test-slurm` has an environment with it"
    if (conf := ETC / "slurm.conf").exists() and not conf.read_text().startswith("# tests/slurm"):
        return f"this machine has a SLURM of its own: {conf}"
    return None


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds} s: {what}")
        time.sleep(0.2)


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


class Cluster:
    """What runs on the pretend cluster and what has run, by SLURM's own records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def launches(self) -> list[Launch]:
        written = self.folder / "launches.txt"
        rows = (line.split() for line in (written.read_text().splitlines() if written.exists() else ()))
        return [Launch(job, step, task, int(gpus)) for job, step, task, gpus in rows]

    def running(self, rule: str) -> list[str]:
        """The numbers of a rule's jobs that run."""
        rows = output("squeue", "--noheader", "--states=RUNNING", "--format=%i %k").splitlines()
        return [row.split()[0] for row in rows if f" rule_{rule}_" in row]

    def ended(self, job: str) -> dict[str, str]:
        """What SLURM wrote down at a job's end: `JobState`, `Tres` (what it was given) and more."""
        rows = (self.folder / "jobs.txt").read_text().splitlines()
        (row,) = [row for row in rows if row.startswith(f"JobId={job} ")]
        return dict(field.split("=", 1) for field in row.split())


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start the daemons, and stop them and all jobs at the end. See `missing`."""
    configure(folder)
    with ExitStack() as at_end:
        at_end.callback(HOSTS.write_text, hosts := HOSTS.read_text())
        HOSTS.write_text(f"{hosts}127.0.0.1 {' '.join(NODES)}\n")
        for name in ("slurm.conf", "gres.conf"):
            at_end.callback((ETC / name).unlink)
        if not succeeds("munge", "--no-input"):
            start_munge()
            at_end.callback(stop, MUNGE_PID)
        at_end.callback(stop, start(folder, "slurmctld"))
        for node in NODES:
            at_end.callback(stop, start(folder, "slurmd", node))
        at_end.callback(cancel_all)
        idle = f"idle {len(NODES)}"
        until(lambda: output("sinfo", "--noheader", "--format=%t %D") == idle, 60, f"no idle nodes, see {folder}")
        yield Cluster(folder)


def configure(folder: Path) -> None:
    """Fill in the templates beside this file, and make what they name."""
    values = {"HOST": socket.gethostname().split(".")[0], "FOLDER": str(folder)}
    ETC.mkdir(exist_ok=True)
    for name, where in (("slurm.conf", ETC), ("gres.conf", ETC), ("task_prolog.sh", folder)):
        text = (HERE / name).read_text()
        for key, value in values.items():
            text = text.replace(key, value)
        (where / name).write_text(text)
    (folder / "task_prolog.sh").chmod(0o755)
    for name in ("gpu0", "gpu1", "launches.txt", "jobs.txt"):
        (folder / name).touch()
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()


def start_munge() -> None:
    MUNGE_PID.parent.mkdir(exist_ok=True)
    shutil.chown(MUNGE_PID.parent, "munge")
    subprocess.run(["munged"], user="munge", group="munge", extra_groups=[], check=True)


def start(folder: Path, daemon: str, node: str = "") -> Path:
    """Start a daemon, wait until it runs, and return its pid file."""
    subprocess.run([daemon, *(["-N", node] if node else [])], check=True)
    name = f"{daemon}-{node}" if node else daemon
    pid_file = folder / f"{name}.pid"
    until(pid_file.exists if node else lambda: succeeds("scontrol", "ping"), 60, f"no {daemon}: {folder / name}.log")
    return pid_file


def cancel_all() -> None:
    subprocess.run(["scancel", "--user=root"], check=True)
    until(lambda: not output("squeue", "--noheader"), 120, "jobs that were cancelled are still there")


def stop(pid_file: Path) -> None:
    pid = int(pid_file.read_text())
    os.kill(pid, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{pid}").exists(), 60, f"{pid_file} has not ended")
