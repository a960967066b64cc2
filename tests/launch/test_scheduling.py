"""Snakemake's scheduler looks for jobs when one has ended, and not over and over."""

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
