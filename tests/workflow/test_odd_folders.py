"""Checkouts in folders whose names a shell or Snakemake would read as something else.

A whole study in one is in tests/workflow/test_deployed.py.
"""

import re
import shutil
import subprocess
import sys
from functools import partial

import pytest
from studies import ROOT

pytestmark = pytest.mark.slow

CHECKOUT = [
    "Snakefile",
    "workflow",
    "config",
    "envs",
    "profiles",
    "mcgrpo",
    "reports",
    "snakemake_logger_plugin_mcgrpo",
]


def test_every_path_in_a_command_is_quoted():
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert rules.count("> {log:q} 2>&1") == rules.count("shell:") > 10
    assert not re.findall(r"\{(?:input|output|log)[\w.]*\}", rules)


@pytest.fixture
def checkout(tmp_path):
    """Name -> a checkout of the repository in a folder of this name."""

    def make(name):
        (folder := tmp_path / name).mkdir()
        for part in CHECKOUT:
            copy = shutil.copy if (ROOT / part).is_file() else partial(shutil.copytree, symlinks=True)
            copy(ROOT / part, folder / part)
        return folder

    return make


def dry_run(folder):
    """In a process of its own, which imports mcgrpo from that folder."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", "--configfile", "config/mini.yaml"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_a_checkout_in_a_folder_with_braces_says_so(checkout):
    folder = checkout("{2,4}")
    done = dry_run(folder)
    assert done.returncode != 0
    assert f"error: {folder}/mcgrpo/report/page: Snakemake takes braces in names for wildcards" in done.stderr
