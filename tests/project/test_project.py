import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from forked import forked
from transformers.integrations import is_mlflow_available

import mcgrpo
from mcgrpo.launch import environment

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


HEAVY = (
    "{'torch', 'transformers', 'trl', 'datasets', 'mlflow', 'pandas', 'sympy', 'huggingface_hub', 'vllm', 'snakemake'}"
)


@pytest.mark.parametrize(
    "names", ["mcgrpo import estimate, ESTIMATORS", "mcgrpo.estimators import *", "mcgrpo.engines.slime import *"]
)
def test_the_estimators_need_torch_alone(names, tmp_path):
    """A person who wants one estimator does not wait for TRL."""
    (tmp_path / "imported.py").write_text(f"import sys; from {names}; print(*{HEAVY} & set(sys.modules))")
    done = forked("imported", imports="torch", cwd=tmp_path)
    assert done.stdout.split() == ["torch"], done.stderr


def test_no_installation_brings_an_engine_that_was_not_asked_for():
    assert [each.partition(">")[0] for each in PROJECT["dependencies"]] == ["torch"]
    extras = {name: " ".join(needs) for name, needs in PROJECT["optional-dependencies"].items()}
    assert not [name for name, needs in extras.items() for engine in ("verl", "skyrl", "slime") if engine in needs]


LIGHT = "study.check study.plan study.fingerprint study.lock launch.environment data.audit analyse.collect"


@pytest.mark.parametrize(
    ("names", "allowed"),
    [
        (LIGHT, {"numpy"}),
        ("grade.completions grade.rewards", set()),
        pytest.param("report.figures.__main__", {"numpy", "pandas"}, marks=pytest.mark.slow),
    ],
    ids=["light", "grading", "figures"],
)
def test_what_the_package_the_dag_and_stages_without_a_model_import_is_light(names, allowed):
    modules = ", ".join(f"mcgrpo.{name}" for name in names.split())
    code = f"import sys, {modules}; print(*({HEAVY} | {{'numpy'}}) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= allowed


def test_all_that_state_the_version_agree():
    (rules,) = re.findall(r'^VERSION = "(.+)"$', (ROOT / "workflow/Snakefile").read_text(), re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (catalog,) = re.findall(r"mcgrpo\[workflow\]==([\d.]+)", (ROOT / ".snakemake-workflow-catalog.yml").read_text())
    assert mcgrpo.__version__ == PROJECT["version"] == rules == citation["version"] == catalog


def test_no_tracked_file_names_a_place_of_one_machine():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    private = re.compile(rb"(?<![\w.])/(?:home|Users|root|work)/\w|\.\./shared")
    texts = {name: path.read_bytes() for name in listed.stdout.split("\0") if (path := ROOT / name).is_file()}
    assert [name for name, text in texts.items() if b"\0" not in text and private.search(text)] == []


def test_jobs_inherit_what_a_study_needs_and_the_user_did_not_set(monkeypatch):
    # A mapping of its own: what `prepare` sets anew, monkeypatch would not take back, and later tests would inherit it
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "7", "PATH": "/bin", "PYTHONUTF8": "0"})
    environment.prepare({})
    assert os.environ["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/bin"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert os.environ["VLLM_USE_FLASHINFER_SAMPLER"] == "0"  # else vLLM does not start where nvcc is not installed
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"  # else it posts them from a thread of every job
    assert os.environ["PYTHONUTF8"] == "1"  # with ASCII a training would end when all its steps are done
    assert not is_mlflow_available()


def test_no_network_is_one_line_and_nothing_is_written(tmp_path):
    environment = {**os.environ, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}
    study, output = tmp_path / "study.yaml", str(tmp_path / "x")
    study.write_text("models: {one: {hub: no/such}}\n")
    for stage, *arguments in (
        ("data.models", "--spec", json.dumps({"hub": "no/such"}), "--output", output),
        ("data", "--spec", json.dumps({"hub": "no/such", "task": "gsm8k"}), "--output", output),
        ("study.lock", str(study)),
    ):
        command = [sys.executable, "-m", f"mcgrpo.{stage}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ") and "no/such: " in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [study]
