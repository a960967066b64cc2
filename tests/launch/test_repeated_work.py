"""Snakemake does once what it does several times for each job, and plans the same."""

import ast
import re

import pytest
from studies import snakemake

JOBS = 20
SNAKEFILE = f"""
import atexit, inspect
from collections import Counter
from snakemake.jobs import Job

calls = Counter()
def counted(name, function):
    def call(*args, **options):
        calls[name] += 1
        return function(*args, **options)
    return call

Job.format_wildcards = counted("commands", Job.format_wildcards)
inspect.signature = counted("signatures", inspect.signature)
atexit.register(lambda: print("counted", dict(calls)))
PATCH
def number(wildcards):
    return int(wildcards.i)

rule all:
    input: expand("{{i}}.txt", i=range({JOBS}))
rule job:
    output: "{{i}}.txt"
    params: number=number, square=lambda wildcards: int(wildcards.i) ** 2
    shell: "echo {{params.number}} {{params.square}} > {{output}}"
"""
PATCH = "from mcgrpo.launch import planning\nplanning.without_repetition()"


@pytest.mark.slow
def test_a_plan_is_the_same_with_less_work(tmp_path):
    def planned(patch):
        (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("PATCH", patch))
        done = snakemake("--dry-run", "--printshellcmds", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        printed, counts = (done.stdout + done.stderr).split("counted ")
        lines = re.sub(r"\[.* \d+:\d+:\d+ \d+\]|Date: .*|Workflow ID: .*|jobid: .*", "", printed).splitlines()
        return sorted(lines), ast.literal_eval(counts)  # the order is another in each process

    (usual, before), (quick, after) = planned(""), planned(PATCH)
    assert quick == usual and f"echo {JOBS - 1} {(JOBS - 1) ** 2} > {JOBS - 1}.txt" in "\n".join(quick)
    assert before["commands"] >= 3 * JOBS, "Snakemake has mended this: _format_commands_once may go"
    assert after["commands"] == JOBS
    assert before["signatures"] > 4 * JOBS, "Snakemake has mended this: _read_parameters_once may go"
    assert after["signatures"] < JOBS
