"""Snakemake's command line as the documentation has it."""

import pytest
from studies import snakemake

from snakemake_logger_plugin_mcgrpo import targets_first

pytestmark = pytest.mark.slow


FLOW = """
# As one of mcgrpo.
rule made:
    output: "{name}.txt"
    resources: gpu=8, mem_mb=8000
    shell: "echo gpu={resources.gpu} mem={resources.mem_mb} > {output}"
"""


def test_targets_follow_several_resources(tmp_path):
    (tmp_path / "Snakefile").write_text(FLOW)
    done = snakemake("--cores", "2", "--resources", "gpu=2", "mem_mb=100", "a.txt", "b.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.txt").read_text() == "gpu=2 mem=100\n" and (tmp_path / "b.txt").exists()


def test_targets_follow_resources_where_the_snakefile_is_elsewhere(tmp_path):
    (tmp_path / "flow").write_text(FLOW)
    done = snakemake("--snakefile", "flow", "--cores", "1", "--resources", "gpu=2", "a.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_other_workflows_are_left_alone(tmp_path):
    (tmp_path / "Snakefile").write_text(FLOW.replace("mcgrpo", "another"))
    done = snakemake("--cores", "1", "--resources", "gpu=2", "a.txt", cwd=tmp_path)
    assert done.returncode != 0 and "ValueError" in done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--resources gpu=2 a.txt", "a.txt --resources gpu=2"),
        ("--cores 2 --res gpu=2 mem_mb=3 a.txt b.txt -n", "a.txt b.txt --cores 2 --res gpu=2 mem_mb=3 -n"),
        ("a.txt --resources gpu=2 --config x=y", "a.txt --resources gpu=2 --config x=y"),
        ("--resources gpu", "--resources gpu"),
        ("--resources gpu=2 -- a.txt", "--resources gpu=2 -- a.txt"),
        ("--set-threads made=2 a.txt", "--set-threads made=2 a.txt"),
        ("--cores 1 a.txt b.txt", "--cores 1 a.txt b.txt"),
        ("", ""),
    ],
)
def test_only_targets_after_resources_are_moved(line, expected):
    assert targets_first(line.split()) == expected.split()
