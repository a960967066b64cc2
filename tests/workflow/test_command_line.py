"""Snakemake's command line as the documentation has it."""

import pytest
from studies import snakemake

from snakemake_logger_plugin_mcgrpo import targets_first

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    """A workflow of one rule, which prints the resources, threads and configuration that it is given."""
    folder = tmp_path_factory.mktemp("flow")
    (folder / "Snakefile").write_text(
        "# As one of mcgrpo.\n"
        'rule made:\n    output: "{name}.txt"\n    threads: 1\n    resources: gpu=8, mem_mb=8000\n'
        '    params: " ".join(config)\n'
        '    shell: "echo gpu={resources.gpu} mem={resources.mem_mb} threads={threads} {params} > {output}"\n'
    )
    for name, key in (("one.yaml", "first"), ("two.yml", "second"), ("three.conf", "third"), ("four.conf", "fourth")):
        (folder / name).write_text(f"{key}: 1\n")
    return folder


def made(flow, *words):
    """What the rule prints, run by this command line for a.txt; b.txt is there if it is named."""
    for old in flow.glob("*.txt"):
        old.unlink()
    done = snakemake("--cores", "2", *words, cwd=flow)
    assert done.returncode == 0, done.stderr
    assert (flow / "b.txt").exists() == ("b.txt" in words)
    return (flow / "a.txt").read_text().strip()


class TestValuesAndTargets:
    def test_several_resources(self, flow):
        assert made(flow, "--resources", "gpu=2", "mem_mb=100", "a.txt", "b.txt").startswith("gpu=2 mem=100 threads=1")

    def test_other_workflows_are_left_alone(self, flow, tmp_path):
        (tmp_path / "Snakefile").write_text((flow / "Snakefile").read_text().partition("\n")[2])
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
