"""A study whose Snakemake and jobs are killed again and again: what is left is reported, and it ends as ever."""

import random
import time
from contextlib import suppress

import pandas as pd
import pytest
from studies import subset

from mcgrpo.train import attempts

pytestmark = pytest.mark.slow

METHODS = ["grpo-plus1", "mc-grpo"]
TARGETS = [f"reports/quick/{name}" for name in ("tables.tex", "claims.md")]
CHECKPOINT = "results/quick/unfinished/**/checkpoint-[12]/complete.json"
MOMENTS = (
    "dataset", "model", "plan", CHECKPOINT, "train", "generate", "grade", "rollouts", "grade_rollouts", "sign_flips",
    "collect", "summarise", "comparisons", "tables", "claims",
)  # fmt: skip
"""Rules, roughly in their order: a job of each is killed at some time, or one of a later rule where all have ended."""


def logs(study, rules):
    """When each job of some rules has last written to its log."""
    written = {}
    for rule in rules:
        for path in (*study.folder.glob(f"logs/quick/{rule}*/**/*.log"), *study.folder.glob(f"logs/quick/{rule}.log")):
            with suppress(FileNotFoundError):  # Snakemake removes the log of a job that it starts again
                written[path] = path.stat().st_mtime_ns
    return written


def within(study, rules, seconds):
    """A moment some seconds after the next job of these rules has started."""
    before, begun = logs(study, rules), []

    def is_time():
        if logs(study, rules) != before:
            begun.append(time.monotonic())
        return bool(begun) and time.monotonic() >= begun[0] + seconds

    return is_time


def seconds_of(study, rule):
    """How long a job of a rule took in a study that has finished."""
    files = [*study.folder.glob(f"results/quick/benchmarks/{rule}/**/*.tsv")]
    files += study.folder.glob(f"results/quick/benchmarks/{rule}.tsv")
    return sum(pd.read_csv(path, sep="\t")["s"].mean() for path in files) / len(files)


def wait_for_trainings(study):
    """Until those of a killed study have died, too."""
    for record in study.folder.glob("results/quick/unfinished/**/run.json"):
        with attempts.alone(record.parent):
            pass


@pytest.fixture
def killed(empty):
    """A study of four trainings, before anything is run."""
    return empty.of(subset(METHODS))


def test_a_study_killed_in_each_rule_ends_with_the_same_tables(killed, reported, tmp_path):
    """SIGKILL in planning, training, generation and analysis as it falls, once in a training that has a checkpoint.

    What is left then is reported, in a copy.
    """
    share = random.Random(0)
    whole, _ = reported(METHODS)
    resumed = False
    for place, rule in enumerate(MOMENTS):
        if rule == CHECKPOINT:
            while not any(killed.folder.glob(CHECKPOINT)):  # a training may end while its checkpoint is looked for
                assert killed.killed_when(lambda: any(killed.folder.glob(CHECKPOINT)), *TARGETS, "--nolock")
                wait_for_trainings(killed)
            assert_what_is_left_is_reported(killed.copied(tmp_path / "copy"))
        else:
            seconds = min(1, share.uniform(0, 0.5) * seconds_of(whole, rule))
            while not killed.killed_when(within(killed, MOMENTS[place:], seconds), *TARGETS, "--nolock"):
                assert seconds > 0.01, rule
                seconds /= 4  # its last jobs were faster than those of `whole`: anew
                for target in TARGETS:
                    (killed.folder / target).unlink()
        resumed |= is_resumed(killed)  # now: one that is killed as it ends begins again, with a new log
    (killed.folder / "results/quick/completions/.killed.jsonl.x.tmp").touch()
    killed.made(*TARGETS, "--nolock", "--quiet", "all")
    assert resumed or is_resumed(killed), "no training was resumed"
    assert not [path for path in killed.folder.glob("results/quick/unfinished/**/*") if path.is_file()]
    assert not [*killed.folder.rglob(".*.tmp")]
    assert killed.tables() == whole.tables()
    assert killed.jobs(*TARGETS) == {}


def is_resumed(study):
    """Whether the log of a training says that it went on from a checkpoint."""
    return any("going on from" in path.read_text() for path in study.folder.glob("logs/quick/train/**/*.log"))


def assert_what_is_left_is_reported(study):
    study = study.changed("partial: true")
    study.made(*TARGETS, "reports/quick/figures/rewards.png", "--nolock", "--quiet", "all")
    assert "missing" in study.tables()["tables.md"].decode()
