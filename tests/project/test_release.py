"""What a release and an image are made from."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import mcgrpo.cli

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "Containerfile").read_text()


def notes(tag):
    command = [sys.executable, ROOT / ".github/release_notes.py", tag]
    return subprocess.run(command, capture_output=True, text=True)


class TestRelease:
    def test_its_notes_are_its_section_of_the_changelog(self):
        done = notes(f"v{mcgrpo.__version__}")
        assert done.returncode == 0 and done.stdout.strip() and "## " not in done.stdout
        assert done.stdout.strip() in (ROOT / "CHANGELOG.md").read_text()

    def test_a_tag_of_another_version_is_refused(self):
        done = notes("v99.0.0")
        assert done.returncode == 1 and done.stderr.startswith("tag v99.0.0: pyproject.toml has version")

    def test_it_calls_what_is_here(self):
        steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["build"]["steps"]
        scripts = "\n".join(step.get("run", "") for step in steps)
        for path in re.findall(r"(?<![\w/])(?:\.github|mcgrpo)/[\w/.]+", scripts):
            assert (ROOT / path).parent.is_dir() and (path.endswith("/commit") or (ROOT / path).is_file())
        commands = re.findall(r"bin/mcgrpo ([\w-]+)", scripts)
        assert set(commands) <= set(mcgrpo.cli.COMMANDS) and len(commands) > 1

    def test_what_the_package_reads_is_in_the_source_archive(self):
        links = [path.readlink() for path in (ROOT / "mcgrpo/shipped").iterdir() if path.is_symlink()]
        packed = re.findall(r"^(?:graft|include) (.+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
        packed = {name for names in packed for name in names.split()}
        for link in links:
            path = Path(*link.parts[2:])
            assert path.parts[0] in packed or str(path) in packed
        assert all((ROOT / name).exists() for name in packed)


class TestImage:
    def test_it_holds_a_locked_set(self):
        (lock,) = re.findall(r"^ARG LOCK=(.+)$", CONTAINERFILE, re.MULTILINE)
        others = re.findall(r"--build-arg LOCK=(\S+)", CONTAINERFILE)
        for name in (lock, *others):
            lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
            assert all(re.fullmatch(r"[\w.\[\]-]+==[\w.!+-]+( ;.+)?", line) for line in lines) and len(lines) > 100
            assert {"torch", "trl", "snakemake"} <= {line.split("==")[0] for line in lines}

    def test_its_python_is_that_of_the_lock(self):
        (version,) = re.findall(r"^FROM python:(\S+?)-slim", CONTAINERFILE, re.MULTILINE)
        assert f"--python-version {version}" in (ROOT / "Makefile").read_text()

    @pytest.mark.parametrize("path", re.findall(r"/opt/mcgrpo/([\w/.]+)", CONTAINERFILE))
    def test_what_its_commands_name_is_here(self, path):
        assert (ROOT / path).is_file()

    def test_nothing_that_git_has_is_left_out(self):
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
        if listed.returncode:
            pytest.skip("not a git checkout")
        skipped = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in "#!"]
        tops = {name.strip("/*").split("/")[0].split(".*")[0] for name in skipped} - {"reports"}
        assert not {name for name in listed.stdout.split("\n") if name.split("/")[0] in tops}
