"""Calls of Snakemake on one study in one folder take turns: real processes, with and without Snakemake's own lock."""

import os
import re
import signal
import subprocess

import pytest
import yaml
from pretend_machine import wait_until
from studies import ROOT, changed, load, snakemake

pytestmark = pytest.mark.slow

WAITS = "waiting for another call that runs study quick in this folder"


LOOKS = ("-n", "--lint", "--list-rules", "--summary", "--rulegraph")


@pytest.fixture
def start(empty):
    """Start Snakemake on a study's model, a job of some seconds; what it says goes to the file that `said` names."""
    study = changed(load("mini"), load("cut-down"))
    study["models"]["toy-qwen3"]["toy"]["warm_start"]["steps"] = 2
    main = {"settings": ["toy-qwen3"], "methods": ["grpo"], "num_generations": [2]}
    study |= {"tracking_uri": None, "experiments": {"main": main}}
    (empty.folder / "study.yaml").write_text(yaml.safe_dump(study))
    empty.configfiles = ["--configfile", str(empty.folder / "study.yaml")]
    calls = []

    def call(*options, targets=("resources/models/quick/toy-qwen3",)):
        said = empty.folder / f"said-{len(calls)}"
        command = empty.command(*targets, *options)
        with said.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, cwd=ROOT, start_new_session=True)
        calls.append(process)
        return process, said

    yield call
    for process in calls:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def log(said):
    return said.read_text()


@pytest.mark.parametrize(("first", "second"), [([], ["--nolock"]), (["--nolock"], [])])
def test_the_second_waits_and_finds_all_done(start, empty, first, second):
    """As `snakemake` beside `make`, whichever comes first; calls that only look wait for neither."""
    one, said = start(*first)
    assert wait_until(lambda: "rule model:" in log(said)), log(said)
    os.killpg(one.pid, signal.SIGSTOP)
    two, other = start(*second)
    assert wait_until(lambda: WAITS in log(other)), log(other)
    for look in LOOKS if second else ("-n",):  # where Snakemake's own lock is taken, too
        looking = snakemake(*empty.words("--nolock", look), timeout=300)
        assert looking.returncode == 0 and WAITS not in looking.stdout + looking.stderr, looking.stderr
    os.killpg(one.pid, signal.SIGCONT)
    assert (one.wait(), two.wait()) == (0, 0), log(other)
    assert "Nothing to be done" in log(other)


def test_it_ends_with_a_call_that_is_killed(start):
    one, said = start("--nolock")
    assert wait_until(lambda: "rule model:" in log(said)), log(said)
    os.killpg(one.pid, signal.SIGSTOP)
    two, other = start("--nolock")
    assert wait_until(lambda: WAITS in log(other)), log(other)
    os.killpg(one.pid, signal.SIGKILL)
    one.wait()
    assert two.wait() == 0 and re.search(r"^1 of 1 steps", log(other), re.MULTILINE), log(other)
