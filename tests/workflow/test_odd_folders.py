"""Names of folders, and a title, that a shell, Snakemake or LaTeX would read as something else."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from document import DOCUMENT
from studies import ROOT, changed, load

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
        copy = shutil.copy if (ROOT / name).is_file() else shutil.copytree
        copy(ROOT / name, folder / name)
    study = changed(load("mini"), load("cut-down"))
    main = {**study["experiments"]["main"], "methods": ["mc-grpo"], "num_generations": [2]}
    study |= {"seeds": [0], "experiments": {"main": main}, "reports": REPORTS, "title": TITLE}
    study["models"]["toy-qwen3"]["toy"]["warm_start"]["steps"] = 2
    study["training"]["max_steps"] = 2
    (folder / "a study.yaml").write_text(yaml.safe_dump(study))
    return folder


def test_a_study_reaches_its_report_and_runs_nothing_of_them(checkout):
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "a study.yaml", "all"]
    done = subprocess.run(
        command, cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = {path.name for path in (checkout / REPORTS).iterdir()}
    assert {"tables.tex", "claims.md", "report.html", *(f"{name}.pdf" for name in DOCUMENT)} <= made
    assert not list(checkout.parent.rglob("RAN"))


def test_a_checkout_in_a_folder_with_braces_says_so(checkout):
    folder = checkout.rename(checkout.with_name("{2,4}"))
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--configfile", "a study.yaml", "all"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"error: {folder}/mcgrpo/report/page: Snakemake takes braces in names for wildcards" in done.stderr
