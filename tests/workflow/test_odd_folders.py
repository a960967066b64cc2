"""Names of folders, and a title, that a shell, Snakemake or LaTeX would read as something else."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial

import pytest
import yaml
from document import DOCUMENT
from studies import ROOT, changed, load, planned

pytestmark = pytest.mark.slow

FOLDER = 'it\'s "a" $(touch RAN) `touch RAN` & é 中文'
REPORTS = "our reports $(touch RAN); touch RAN; 'é"
TITLE = r"G in {2,4,8}: \input{/etc/passwd} $(touch RAN) ~^ é 中文"
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
    """A checkout of the repository in such a folder, with a study of one training."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    for name in CHECKOUT:
        copy = shutil.copy if (ROOT / name).is_file() else partial(shutil.copytree, symlinks=True)
        copy(ROOT / name, folder / name)
    study = changed(load("mini"), load("cut-down"))
    main = {"settings": ["toy-qwen3"], "methods": ["mc-grpo"], "num_generations": [2]}
    study |= {"seeds": [0], "experiments": {"main": main}, "reports": REPORTS, "title": TITLE}
    study["models"]["toy-qwen3"]["toy"]["warm_start"]["steps"] = 2
    study["training"]["max_steps"] = 2
    (folder / "a study.yaml").write_text(yaml.safe_dump(study))
    return folder


def snakemake(folder, *options):
    command = [sys.executable, "-m", "snakemake", *options, "--configfile", "a study.yaml", "all"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def jobs(folder):
    """The rules of which a dry run plans jobs."""
    done = snakemake(folder, "--dry-run", "--quiet", "rules")
    assert done.returncode == 0, done.stdout + done.stderr
    return {*planned(done.stdout + done.stderr)}


def test_a_study_reaches_its_report_and_runs_nothing_of_them(checkout):
    """Nor does it run anything again once its checkout has moved, unless the paper's claims or numbers change."""
    done = snakemake(checkout, "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    made = {path.name for path in (checkout / REPORTS).iterdir()}
    assert {"tables.tex", "claims.md", "report.html", *(f"{name}.pdf" for name in DOCUMENT)} <= made
    assert not list(checkout.parent.rglob("RAN"))
    moved = checkout.rename(checkout.with_name("moved"))
    assert jobs(moved) == set()
    with (moved / "config/claims.yaml").open("a") as claims:
        claims.write("\n")
    assert jobs(moved) >= {"contrasts", "claims", "page"} and "summarise" not in jobs(moved)
    with (moved / "config/published.csv").open("a") as published:
        published.write("\n")
    assert "summarise" in jobs(moved) and "collect" not in jobs(moved)


def test_a_checkout_in_a_folder_with_braces_says_so(checkout):
    folder = checkout.rename(checkout.with_name("{2,4}"))
    done = snakemake(folder, "--dry-run")
    assert done.returncode != 0
    assert f"error: {folder}/mcgrpo/report/page: Snakemake takes braces in names for wildcards" in done.stderr
