"""Measure the overhead of tracking: `python bench/tracking.py --results results/mini`.

One run of a finished study (`make mini`) is trained repeatedly, alternately with and without an MLflow store, in the
way of a study: in processes forked from one that has imported everything (`mcgrpo.launch.preload`), with one follower
for all of them. The result is the ratio within a pair, of wall time and of CPU time. CPU time includes the follower's
and is more reliable on a busy machine. Exits with an error if the median of either exceeds `--limit`.
"""

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import psutil

from mcgrpo.files import atomic
from mcgrpo.launch.preload_server import PRELOAD
from mcgrpo.tracking import FOLLOWED, URI, follower
from mcgrpo.tracking.follow import INTERVAL_SECONDS
from mcgrpo.train.job import Job, parse_run, run_job


def cpu_of(process: subprocess.Popen) -> float:
    """CPU seconds of a process so far."""
    return sum(psutil.Process(process.pid).cpu_times()[:2])


def trained(job: Job, store: str | None, said: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one training in a process of its own, which writes to `said`."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ |= {URI: store, FOLLOWED: "1"} if store else {}
            log = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            run_job(job)
            code = 0
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"the training failed: {said.read_text()[-2000:]}")
    return time.monotonic() - start, used.ru_utime + used.ru_stime


def pairs(results: Path, job: Job, store: str, following: subprocess.Popen, repetitions: int) -> list[dict[str, float]]:
    """A row for each repetition: seconds without and with tracking, of both clocks."""
    rows = []
    for number in range(-1, repetitions):  # the first pair warms up
        row: dict[str, float] = {"repetition": number}
        for name in ("without", "with") if number % 2 else ("with", "without"):
            run = replace(job.run, seed=number + 1)
            home = results if name == "with" else results.with_name("without")
            place = {"output": home / "runs" / run.name, "unfinished": home / "unfinished" / run.name}
            used = cpu_of(following)
            made = replace(job, run=run, weights=home / "models" / run.name, **place)
            wall, cpu = trained(made, store if name == "with" else None, results.with_name("log"))
            if name == "with":
                time.sleep(2 * INTERVAL_SECONDS)  # what the follower has to do for this one, it has done by then
                cpu += cpu_of(following) - used
            row |= {f"wall_{name}": wall, f"cpu_{name}": cpu}
        if number >= 0:
            rows.append(row)
            print("  ".join(f"{key} {value:.2f}" for key, value in row.items()), flush=True)
    return rows


def main() -> None:
    """Measure, write the table, print the medians."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--results", type=Path, default=Path("results/mini"))
    parser.add_argument("--run", default="toy-qwen3/mc-grpo/G2/default/seed0")
    parser.add_argument("--repetitions", type=int, default=8)
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--csv", type=Path, default=Path("reports/bench/tracking.csv"))
    options = parser.parse_args()
    for module, _, names in (item.partition(":") for item in PRELOAD.split()):
        loaded = importlib.import_module(module)
        [getattr(loaded, name) for name in names.split(",") if name]
    run = parse_run(str(options.results / "runs" / options.run / "run.json"))
    resources = options.results.parents[1] / "resources"
    model, data = resources / "models" / run.study / run.model, resources / "data" / run.study / f"{run.dataset}.jsonl"
    with tempfile.TemporaryDirectory() as folder:
        results, store = Path(folder) / run.study, f"sqlite:///{folder}/mlflow.db"
        job = Job(run, model, data, Path(), Path(), save_steps=20)
        os.environ[URI] = store
        following = follower("--results", results)
        del os.environ[URI]
        try:
            rows = pairs(results, job, store, following, options.repetitions)
        finally:
            following.terminate()
            following.wait()
    table = pd.DataFrame(rows)
    with atomic(options.csv) as temporary:
        table.to_csv(temporary, index=False)
    medians = []
    for clock in ("wall", "cpu"):
        without = table[f"{clock}_without"]
        ratio = table[f"{clock}_with"] / without
        medians.append(ratio.median())
        spread = f"{len(table)} pairs, {ratio.min():.3f} to {ratio.max():.3f}"
        print(f"{clock}: {without.median():.2f} s without tracking; with it x {ratio.median():.3f} ({spread})")
    if max(medians) > options.limit:
        sys.exit(f"tracking adds more than a factor of {options.limit}")


if __name__ == "__main__":
    main()
