"""A small study, and files such as its jobs leave."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import studies

from mcgrpo.commands.progress.jobs import TRAIN, jobs
from mcgrpo.commands.progress.left import left
from mcgrpo.commands.progress.state import Study
from mcgrpo.commands.progress.text import block
from mcgrpo.study.paths import LOCK

CHANGE = {
    "training": {"prompts_per_step": 8, "max_steps": 40},
    "experiments": {"main": {"methods": ["grpo", "mc-grpo"], "num_generations": [2], "seeds": [0, 1]}},
}
SMALL = {**studies.changed(studies.load("mini"), CHANGE), "study": "small", "reports": "reports/small"}
SMALL["experiments"] = {"main": SMALL["experiments"]["main"]}
NOW = 1_800_000_000.0
FIRST, SECOND = "toy-qwen3/grpo/G2/default/seed0", "toy-qwen3/mc-grpo/G2/default/seed0"


def named(rule):
    return {job.name: job for job in jobs(SMALL) if job.rule == rule}


def rest(now=NOW):
    return left(Study(SMALL).read(now), now)


def shown(now=NOW):
    found = Study(SMALL).read(now)
    return "\n".join(block("small", found, "0 of 5 files", left(found, now), now))


def write(path, text, changed=NOW):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (changed, changed))


def end(job, seconds, at=NOW, **changed):
    """What a job leaves that Snakemake has seen end well."""
    for output in job.outputs:
        outcome = {"status": "finished", "started": at - 1.0, "seconds": 1.0, "steps": 40}
        record = {**asdict(job.run), **changed, "outcome": outcome}
        write(output, json.dumps(record) if job.rule == TRAIN else "", at)
    write(job.timed, f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\t-\n", at)


def begin(job, steps=0, pace=2.0, status="running", at=NOW, **outcome):
    """What a training leaves while it runs, `at` its last step."""
    folder = Path("results", job.run.study, "unfinished", job.name)
    record = {**asdict(job.run), "outcome": {"status": status, "data": {"rows": 320}, **outcome}}
    write(folder / "run.json", json.dumps(record), at - pace * steps)
    rows = [{"step": step + 1, "time": at - pace * (steps - 1 - step)} for step in range(steps)]
    write(folder / "metrics.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows), at)
    write(folder / LOCK, "")
    return folder
