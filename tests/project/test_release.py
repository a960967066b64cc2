"""What a release and an image are made from."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

import mcgrpo.cli

ROOT = Path(__file__).parents[2]


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    command = [sys.executable, ROOT / ".github/release_notes.py"]
    done = subprocess.run([*command, f"v{mcgrpo.__version__}"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() and "\n## " not in done.stdout
    assert done.stdout.strip() in (ROOT / "CHANGELOG.md").read_text()
    other = subprocess.run([*command, "v99.0.0"], capture_output=True, text=True)
    assert other.returncode == 1 and other.stderr.startswith("tag v99.0.0: pyproject.toml has version")


def test_it_calls_commands_that_there_are():
    steps = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["build"]["steps"]
    commands = re.findall(r"bin/mcgrpo ([\w-]+)", "\n".join(step.get("run", "") for step in steps))
    assert set(commands) <= set(mcgrpo.cli.COMMANDS) and len(commands) > 1


def test_what_the_package_reads_is_in_the_source_archive():
    links = [path.readlink() for path in (ROOT / "mcgrpo/shipped").iterdir() if path.is_symlink()]
    packed = re.findall(r"^(?:graft|include) (.+)$", (ROOT / "MANIFEST.in").read_text(), re.MULTILINE)
    packed = {name for names in packed for name in names.split()}
    paths = [Path(*link.parts[2:]) for link in links]
    assert [path for path in paths if path.parts[0] not in packed and str(path) not in packed] == []
    assert all((ROOT / name).exists() for name in packed)


def test_an_image_holds_a_locked_set_for_its_python():
    text = (ROOT / "Containerfile").read_text()
    for name in re.findall(r"\bLOCK=(\S+)", text):
        lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
        assert all(re.fullmatch(r"[\w.\[\]-]+==[\w.!+-]+( ;.+)?", line) for line in lines) and len(lines) > 100
        assert {"torch", "trl", "snakemake"} <= {line.split("==")[0] for line in lines}
    (version,) = re.findall(r"^FROM python:(\S+?)-slim", text, re.MULTILINE)
    assert f"--python-version {version}" in (ROOT / "Makefile").read_text()
