"""Where the time of a command goes: `python bench/cpu.py --csv reports/bench/cpu.csv COMMAND ...`.

Runs the command and prints the CPU seconds of all its processes by kind of work. A process is recognised by an
environment variable that it inherits, and its kind by its log (`logs/STUDY/RULE/`) or its command line; servers that
leave the terminal session are included. Processes are looked at every `INTERVAL_SECONDS`: what they use after the last
look is `not seen`. The seconds of a training are divided among its phases in proportion to `metrics.jsonl`.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from mcgrpo.files import atomic
from mcgrpo.launch import preload

INTERVAL_SECONDS = 0.1
MARK = "MCGRPO_PRELOAD_MEASURED"
"""The variable. With this start of its name, a study has a preload server of its own (`mcgrpo.launch.preload`)."""
LOG = re.compile(r"logs/([^/]+)/([a-z_]+)[./]")
KINDS = {
    "preload_server.py": "imports shared by jobs",
    "mcgrpo.tracking.follow": "tracking: follower",
    "pytest": "pytest",
    "execnet": "pytest",
    "snakemake": "Snakemake",
}
"""A word of the command line -> the kind of a process that has no log of a job. The first that fits."""


def kind(process: psutil.Process) -> str:
    """The kind of work of a process; empty for one that ends."""
    words = " ".join(process.cmdline())
    if not words:
        return ""
    job = LOG.search(str(Path(f"/proc/{process.pid}/fd/1").readlink()))
    if job:
        return f"job: {job[2]}" if "preload_server.py" in words or "mcgrpo.launch" not in words else "starting jobs"
    return next((name for word, name in KINDS.items() if word in words), "other")


class Sampler:
    """The CPU seconds of all processes that inherit `MARK=value`."""

    def __init__(self, value: str):
        self.value = value
        self.mine: dict[psutil.Process, bool] = {}
        self.kinds: dict[psutil.Process, str] = {}
        self.used: dict[psutil.Process, Any] = {}

    def look(self) -> int:
        """Look at every process once; returns how many there are."""
        alive = 0
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process not in self.mine:
                    self.mine[process] = process.environ().get(MARK) == self.value
                if self.mine[process]:
                    self.used[process] = process.cpu_times()
                    alive += 1
                    if name := kind(process):  # it may change: a fork of the server gets its log, a shell becomes a job
                        self.kinds[process] = name
        return alive

    def seconds(self) -> Counter:
        """CPU seconds by kind."""
        found: Counter = Counter()
        for process, used in self.used.items():
            found[self.kinds.get(process, "other")] += used.user + used.system
        return found

    def served(self) -> float:
        """CPU seconds of the ended jobs of preload servers, exactly."""
        servers = [self.used[process] for process, name in self.kinds.items() if name == KINDS["preload_server.py"]]
        return sum(used.children_user + used.children_system for used in servers)


def phases(results: Path, since: float) -> Counter:
    """Wall seconds of the trainings that ended since then, by phase; the rest is `start and end`."""
    from mcgrpo.trainer.timing import PHASES  # its import takes seconds

    found: Counter = Counter()
    for record in results.glob("runs/**/run.json"):
        if record.stat().st_mtime < since:
            continue
        found["start and end"] += json.loads(record.read_text())["outcome"]["seconds"]
        for line in (record.parent / "metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            for name in PHASES:
                found[name] += row[f"seconds/{name}"]
                found["start and end"] -= row[f"seconds/{name}"]
    return found


def busy() -> float:
    """CPU seconds that all processes of the machine have used."""
    used = psutil.cpu_times()
    return used.user + used.nice + used.system


def children_seconds() -> float:
    """CPU seconds of the children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(command: list[str], results: Path | None) -> list[tuple[str, float]]:
    """Run a command; returns the rows of the table."""
    sampler, before, begun, started = Sampler(str(os.getpid())), busy(), time.time(), time.monotonic()
    earlier = children_seconds()
    child = subprocess.Popen(command, env=os.environ | {MARK: str(os.getpid())})
    while child.poll() is None:
        sampler.look()
        time.sleep(INTERVAL_SECONDS)
    wall, others = time.monotonic() - started, busy() - before
    preload.stop()
    while sampler.look():  # servers end, and the follower
        time.sleep(INTERVAL_SECONDS)
    found = sampler.seconds()
    detached = {"imports shared by jobs", "tracking: follower"}
    total = children_seconds() - earlier + sampler.served() + sum(found[name] for name in detached)
    found["not seen"] = total - sum(found.values())
    if results and (parts := phases(results, begun)):
        trained, whole = found.pop("job: train", 0.0), sum(parts.values())
        for name, seconds in parts.items():
            found[f"job: train, {name}"] = trained * seconds / whole
    rows = sorted(found.items(), key=lambda item: -item[1])
    cores = len(os.sched_getaffinity(0))
    idle = wall * cores - others
    others = ("other processes of the machine", others - total)
    return [*rows, ("all", total), ("wall-clock time", wall), others, (f"idle, of {cores} cores", idle)]


def main() -> None:
    """Run a command and print where its time went."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--results", type=Path, help="results/STUDY of the command, for the phases of trainings")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    table = pd.DataFrame(measure(options.command, options.results), columns=["kind", "seconds"])
    print(table.to_markdown(index=False, floatfmt=".1f"))
    if options.csv:
        with atomic(options.csv) as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    sys.exit(main())
