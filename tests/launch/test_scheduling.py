"""Snakemake's scheduler looks for jobs when one has ended, and not over and over; it ends when it is told to."""

import subprocess

import pytest
from studies import snakemake

JOBS = 24
SNAKEFILE = f"""
from mcgrpo.launch.scheduling import without_rate_limit
rule all:
    input: expand("{{i}}.txt", i=range({JOBS}))
rule job:
    output: "{{i}}.txt"
    shell: "sleep 0.5; touch {{output}}"
"""


@pytest.mark.slow
def test_a_pass_for_each_job_that_ends(tmp_path):
    def passes(snakefile):
        (tmp_path / "Snakefile").write_text(snakefile)
        done = snakemake("--cores", "2", "--scheduler", "greedy", "--forceall", "--verbose", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stderr.count("Ready jobs: ")

    assert passes(SNAKEFILE) > 2 * JOBS, "Snakemake has mended this: without_rate_limit may go"
    assert passes(f"{SNAKEFILE}onstart: without_rate_limit(workflow)\n") <= JOBS + 2


TOLD_TO_END = """
import os, signal
from snakemake.jobs import Job
from mcgrpo.launch.scheduling import without_deadlock
postprocess = Job.postprocess
async def told_to_end(job, error=False, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    await postprocess(job, error=error, **options)
Job.postprocess = told_to_end
rule all:
    output: "a.txt"
    shell: "false"
"""


@pytest.mark.slow
def test_a_signal_while_a_job_that_failed_is_handled_ends_it(tmp_path):
    """As where SLURM cancels a job: its step fails, and Snakemake is told to end while it handles that."""
    (tmp_path / "Snakefile").write_text(f"{TOLD_TO_END}without_deadlock()\n")
    assert snakemake("--cores", "1", cwd=tmp_path, timeout=120).returncode == 1
    (tmp_path / "Snakefile").write_text(TOLD_TO_END)
    with pytest.raises(subprocess.TimeoutExpired):  # Snakemake has mended this: without_deadlock may go
        snakemake("--cores", "1", cwd=tmp_path, timeout=10)
