"""Snakemake's command line as the documentation has it."""

import os
import shutil
import subprocess
import sys

import pytest
from studies import ROOT, snakemake

from snakemake_logger_plugin_mcgrpo import targets_first

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parser():
    from snakemake.cli import get_argument_parser  # half a second, which the fast tests do not need

    return get_argument_parser()


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    """A workflow of one rule, which prints the resources, threads and configuration that it is given."""
    folder = tmp_path_factory.mktemp("flow")
    (folder / "Snakefile").write_text(
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

    def test_between_others(self, flow):
        shown = made(flow, "--resources", "gpu=2", "a.txt", "--set-threads", "made=2", "--config", "key=value")
        assert shown == "gpu=2 mem=8000 threads=2 key"

    def test_options_of_pairs_alike(self, flow):
        assert made(flow, "--set-threads", "made=2", "a.txt").startswith("gpu=8 mem=8000 threads=2")
        assert made(flow, "--set-resources", "made:gpu=3", "made:mem_mb=7", "a.txt").startswith("gpu=3 mem=7 threads=1")
        assert made(flow, "--config", "path=x/y", "other={a: b=c}", "a.txt", "b.txt").endswith("path other")

    def test_a_target_of_its_own_place(self, flow):
        assert made(flow, "a.txt", "--resources", "gpu=2").startswith("gpu=2")
        assert made(flow, "--resources", "gpu=2", "--", "a.txt").startswith("gpu=2")
        assert made(flow, "--resources=gpu=2", "a.txt", "b.txt").startswith("gpu=2")

    def test_study_files(self, flow):
        assert made(flow, "--configfile", "one.yaml", "a.txt").endswith("threads=1 first")
        assert made(flow, "--configfile", "one.yaml", "two.yml", "a.txt", "b.txt").endswith("first second")
        assert made(flow, "--configfile", "three.conf", "four.conf", "--", "a.txt").endswith("third fourth")
        assert made(flow, "--configfile=one.yaml", "a.txt").endswith("first")

    def test_a_rule_is_a_target(self, flow):
        done = snakemake("--cores", "1", "--resources", "gpu=2", "made", cwd=flow)
        assert done.returncode != 0 and "Target rules may not contain wildcards" in done.stderr


class TestWhatSnakemakeRejects:
    """is rejected as before, and the message names the culprit."""

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (["--resources", "gpu", "a.txt"], "--resources/--res: 'gpu' is not of the form NAME=INT"),
            (["--resources", "gpu=many", "a.txt"], "gpu"),
            (["--resources", "gpu=2", "mem_mb", "a.txt"], "mem_mb"),
            (["--set-threads", "made=none", "a.txt"], "made=none"),
            (["--configfile", "one.yaml", "no.yaml", "a.txt"], "no.yaml"),
        ],
    )
    def test_the_culprit_is_named(self, flow, words, complaint):
        done = snakemake("--cores", "1", *words, cwd=flow)
        assert done.returncode != 0 and complaint in done.stderr


class TestTargetsFirst:
    @pytest.mark.parametrize(
        "line",
        [
            "a.txt --cores 2 --resources gpu=2 mem_mb=3",
            "--forcerun made a.txt",
            "--until made a.txt",
            "--quiet rules a.txt",
            "--cores 1 a.txt b.txt",
            "--set-threads base64//bWFkZT0y base64//b3RoZXI9Mw== --mode remote",
            "--default-resources base64//dG1wZGlyPXN5c3RlbV90bXBkaXI= mem_mb=3",
            "--resources gpu=2 -- a.txt x=y",
            "--configfile -- a.txt",
            "--resources",
            "--default-resources none --cores 1",
            "",
        ],
    )
    def test_what_needs_nothing_stays(self, parser, line):
        assert targets_first(parser, line.split()) == line.split()

    @pytest.mark.parametrize(
        "option", ["--envvars A B", "--groups made=g other=h", "--group-components g=2", "--resources gpu=2"]
    )
    def test_the_others_go_in_front(self, parser, option):
        line = f"--cores 2 {option} reports/a.txt b.txt"
        assert targets_first(parser, line.split()) == ["reports/a.txt", "b.txt", "--cores", "2", *option.split()]

    def test_a_snakemake_that_takes_one_value_is_left_alone(self, parser):
        parser = type(parser)()
        parser.add_argument("--resources", metavar="NAME=INT", action="append")
        parser.add_argument("targets", nargs="*")
        line = ["--resources", "gpu=2", "a.txt"]
        assert targets_first(parser, line) == line
        assert parser.parse_args(line).targets == ["a.txt"]


def test_an_editable_installation_has_it(tmp_path):
    """Snakemake does not see plugins behind an import hook, which is how setuptools may install a folder."""
    folder = tmp_path / "checkout"
    for name in ("mcgrpo", "snakemake_logger_plugin_mcgrpo"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    subprocess.run([*pip, "--prefix", tmp_path / "installed", "--editable", folder], check=True, capture_output=True)
    (site,) = (tmp_path / "installed").glob("**/site-packages")
    code = f"import site, pkgutil; site.addsitedir({str(site)!r}); print(*(m.name for m in pkgutil.iter_modules()))"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "snakemake_logger_plugin_mcgrpo" in found.stdout.split(), found.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("study: x\na: [1, 2\nb: 3\n", "broken.yaml, line 3: while parsing a flow sequence: expected ',' or ']'"),
        ("study: x\nb: 1\n  c: 2\n", "broken.yaml, line 3: mapping values are not allowed here"),
        ("- x\n", "broken.yaml: holds no keys with values"),
        (None, "broken.yaml: no such file"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named_with_its_line(flow, text, said):
    (flow / "broken.yaml").unlink(missing_ok=True)
    if text is not None:
        (flow / "broken.yaml").write_text(text)
    done = snakemake("--dry-run", "--configfile", "one.yaml", "broken.yaml", cwd=flow)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error in the study file: {said}")
    assert "Traceback" not in done.stderr
