"""The checks of `mcgrpo doctor`, with real files and processes; the hub is a server of our own, nvidia-smi a script."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fake_hub
import pytest
import runs
import studies
import yaml

from mcgrpo.commands.doctor import demands, machine
from mcgrpo.commands.doctor.__main__ import main
from mcgrpo.commands.doctor.hub import check_hub
from mcgrpo.commands.forecast.hub_answers import Answer
from mcgrpo.commands.forecast.sizes import Model, Sizes, sizes
from mcgrpo.study.fit import job_gpus
from mcgrpo.study.plan import runs as runs_of

ROOT = Path(__file__).parents[2]
MINI = studies.load("mini")
PINNED = fake_hub.COMMIT
TRAINED = [run for run in runs_of(MINI) if run.training]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to run a study in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def doctor(study, **environment):
    """Exit code, output, and the check of each topic and name."""
    command = [sys.executable, "-m", "mcgrpo.cli", "doctor", str(study)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    found = {line.split(":")[0].split(maxsplit=1)[1]: line for line in done.stdout.splitlines() if ":" in line}
    return done.returncode, done.stdout, found


def in_process(monkeypatch, capsys, study):
    """Exit code and output; as a process: below, where the hub is asked, and in tests/commands/test_cli.py."""
    monkeypatch.setattr("sys.argv", ["mcgrpo doctor", str(study)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().out


def test_the_mini_study_can_run_here(here, monkeypatch, capsys):
    code, out = in_process(monkeypatch, capsys, ROOT / "config/mini.yaml")
    assert code == 0 and not any(line.startswith("error") for line in out.splitlines()), out
    assert f"mini: {len(runs_of(MINI))} runs, {len(TRAINED)} of them trainings" in out
    assert re.search(r"\n\n\d+ checks: (\d+ warning, )?\d+ ok.\n$", out) and list(here.iterdir()) == []


def test_a_broken_study_is_an_error(here, monkeypatch, capsys):
    (here / "study.yaml").write_text("study: x\nsedes: [1]")
    code, out = in_process(monkeypatch, capsys, "study.yaml")
    assert code == 1 and out.startswith("error    study     the study: unknown key 'sedes'")


def hub_study(folder, **data):
    """A study of four models of the hub, one of which can be had at what it is pinned at, and a data set."""
    config = studies.load("smoke")
    pins = {"open": {"revision": PINNED}, "gated": {}, "missing": {}, "moved": {"revision": "v9"}}
    config["models"] = {name: {"hub": f"org/{name}".replace("moved", "open"), **pin} for name, pin in pins.items()}
    config["datasets"] = {"data": {"task": "gsm8k", "hub": "org/data", **data}}
    setting = {"dataset": "data", "prompt": "plain", "benchmarks": {"in": ["data"]}}
    config["settings"] = {name: {**setting, "model": name} for name in pins}
    config["experiments"]["main"]["settings"] = list(pins)
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    return config


@pytest.mark.slow
def test_the_hub_says_what_can_be_downloaded(here):
    hub_study(here)
    model = {"safetensors": {"parameters": {"F32": 100}, "total": 100}}
    repositories = {"models/org/open": model, "models/org/gated": {"gated": "manual"}, "datasets/org/data": {}}
    with fake_hub.serving(repositories) as (environment, asked):
        code, _, found = doctor("study.yaml", HF_HOME=str(here), **environment)
    page = f"{environment['HF_ENDPOINT']}/org/gated"
    for name, status, words in (
        ("model     open", "ok", f"pinned at {PINNED[:8]}"),
        ("model     gated", "error", f"accept the licence at {page}, then `hf auth login`"),
        ("model     missing", "error", "no such repository, or a private one"),
        ("model     moved", "error", "no revision 'v9'"),
        ("data set  data", "warning", "`mcgrpo lock"),
    ):
        assert found[name].startswith(status) and words in found[name]
    assert code == 1
    assert "/api/models/org/gated/auth-check" in asked and "/api/models/org/open/auth-check" not in asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://[::1]:9"}]
)
def test_without_the_hub_only_a_pinned_data_set_may_come_from_a_cache(here, environment):
    hub_study(here, revision=PINNED)
    code, out, found = doctor("study.yaml", HF_HOME=str(here), **environment)
    assert code == 1 and "cannot be reached" in out
    assert found["data set  data"].startswith("warning") and found["model     open"].startswith("error")


def of_data(config, known=None):
    (check,) = [check for check in check_hub(config, known or sizes(config)) if check.topic == "data set"]
    return check


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"split": "train", ID}\n{"split": "test", ID}\n', ""),
        ("{", "data.jsonl:1: not valid JSON"),
        ("", "split 'train' is empty"),
    ],
)
def test_what_has_been_made_is_read_and_not_asked_for(here, content, fault):
    config = hub_study(here)
    for name, spec in config["models"].items():
        source = here / "resources/models/smoke" / name / "source.json"
        source.parent.mkdir(parents=True)
        source.write_text(json.dumps({**spec, "commit": PINNED}))
    data = here / "resources/data/smoke/data.jsonl"
    data.parent.mkdir(parents=True)
    data.write_text(content.replace("ID", '"id": "0", "question": "1 + 1?", "answer": "2"'))
    data.with_name("data.source.json").write_text(json.dumps({**config["datasets"]["data"], "revision": PINNED}))
    assert sizes(config).hub == {}
    check = of_data(config)
    assert (check.status, fault in check.finding) == ("error" if fault else "ok", True)
    config["models"]["open"]["revision"] = "d" * 40
    assert list(sizes(config).hub) == [("models", "open")]


ROW = '{"question": "1 + 1?", "answer": "#### 2"}\n'


@pytest.mark.parametrize(
    ("test", "fault"),
    [
        (ROW, ""),
        (ROW + ROW[:20], "/test.jsonl:2: not valid JSON"),
        ("", ": split 'test' is empty"),
        (None, "/test.jsonl: no such"),
    ],
)
def test_a_local_data_set_is_read(here, test, fault):
    config = studies.load("smoke")
    config["datasets"]["gsm8k"]["folder"] = str(here)
    (here / "train.jsonl").write_text(ROW)
    if test is not None:
        (here / "test.jsonl").write_text(test)
    check = of_data(config)
    assert check.status == ("error" if fault else "ok") and check.finding.startswith(f"gsm8k: {here}{fault}")


def test_a_split_that_is_empty_on_the_hub_is_an_error(here):
    check = of_data(hub_study(here), Sizes(hub={("datasets", "data"): Answer(rows={"train": 8, "test": 0})}))
    assert check.status == "error" and "split 'test' is empty" in check.finding


NVIDIA_SMI = """#!/bin/sh
case "$1" in
-L) echo "GPU 0: Pretend (UUID: GPU-a)"; echo "GPU 1: Pretend (UUID: GPU-b)";;
*) echo "GPU-a, 81920"; echo "GPU-b, 40960";;
esac
"""


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """A machine with a GPU of 80 and one of 40 GiB."""
    script = tmp_path / "bin/nvidia-smi"
    script.parent.mkdir()
    script.write_text(NVIDIA_SMI)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("visible", "gpus", "status", "gib"),
    [(None, 2, "ok", 40), (None, 4, "error", 40), (None, 0, "ok", 40), ("0", 2, "error", 80), ("7", 1, "error", None)],
)
def test_gpus_are_counted_and_the_smallest_has_to_do(two_gpus, monkeypatch, visible, gpus, status, gib):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.check_gpus(1, gpus).status == status
    assert machine.device_memory() == (gib and gib * 2**30)


SERVER = {"use_vllm": True, "vllm_mode": "server"}


@pytest.mark.parametrize(
    ("study", "status", "words"),
    [
        ({"gpus": 4, "nodes": 2}, "ok", "one training takes 2 on each of 2 machines"),
        ({"gpus": 2, "training": SERVER}, "error", "one training takes 3"),
        ({"gpus": 1, "training": SERVER}, "ok", "one training takes 2: 1 at a time with --resources gpu=2"),
        ({"gpus": 2, "settings": {"toy-llama": {"training": SERVER}}}, "error", "one training takes 3"),
        ({"gpus": 2, "variants": {"rival-sign": {"training": SERVER}}}, "error", "one training takes 3"),
    ],
)
def test_gpus_of_other_machines_do_not_count_and_those_of_a_server_do(two_gpus, study, status, words):
    """Wherever the study turns the server on."""
    config = studies.changed(MINI, study)
    found = machine.check_gpus(config.get("nodes", 1), job_gpus(config, runs_of(config)))
    assert found.status == status and words in found.finding


@pytest.mark.parametrize(
    ("billions", "training", "status", "words"),
    [
        (2, {}, "ok", "about 30 GiB, here: 40 GiB"),
        (2.5, {}, "warning", "about 37 GiB"),
        (3, {}, "error", "about 45 GiB"),
        (2, {"use_vllm": True}, "error", "vLLM 30%"),
        (0, {}, "warning", "size of toy"),
    ],
)
def test_memory_is_compared_with_the_device_if_there_is_one(two_gpus, monkeypatch, billions, training, status, words):
    run = replace(runs.RUN, training={"per_device_train_batch_size": 4, "max_completion_length": 9, **training})
    known = Sizes({"toy": Model(int(billions * 1e9))}, {"sums": {}})
    (found,) = demands.check_memory({"gpus": 1}, [run], known)
    assert found.status == status and words in found.finding
    monkeypatch.setenv("MCGRPO_DEVICES", "")
    (found,) = demands.check_memory({"gpus": 1}, [run], known)
    assert found.status == "warning" and ("here: unknown" in found.finding or not billions)


def test_batches_are_listed_once_for_all_variants_that_have_them():
    found = [check.finding for check in demands.check_batches(MINI, TRAINED, sizes(MINI))]
    assert len(found) == 7
    assert any("x 160 rows x 1 accumulated = 20 prompts x G=8 per step, 12 steps" in line for line in found)


def test_a_data_set_smaller_than_a_batch_is_an_error():
    config = studies.changed(MINI, {"datasets": {"two-step": {"splits": {"train": {"rows": 59}}}}})
    short = {check.status: check.finding for check in demands.check_batches(config, TRAINED, sizes(config))}
    assert "= 80 prompts x G=" in short["error"] and "fixed-rows" in short["ok"]  # 20 prompts at a time


def test_too_little_disk_is_an_error(here):
    known = sizes(MINI)
    huge = replace(known, models={**known.models, "toy-qwen3": Model(10**12)})
    unknown = Sizes(dict.fromkeys(known.models, Model()), known.rows, {("models", "toy-qwen3"): Answer("unreachable")})
    assert [demands.check_disk(MINI, each).status for each in (known, huge, unknown)] == ["ok", "error", "warning"]


def test_missing_programs_are_warnings(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.topic: check.status for check in machine.check_machine(MINI)}
    assert found["git"] == found["latexmk"] == "warning"


@pytest.mark.parametrize("store", [None, "sqlite:///mlflow.db", "databricks"])
def test_only_a_tracking_server_is_asked(monkeypatch, store):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert machine.check_tracking({"tracking_uri": store}).status == "ok"
    with fake_hub.serving({}) as (environment, asked):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", environment["HF_ENDPOINT"])  # before the study's own
        assert "answers with 404" in machine.check_tracking({"tracking_uri": store}).finding and asked == ["/health"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")  # as for the workflow: no store, whatever the study says
    assert machine.check_tracking({"tracking_uri": store}).finding.startswith("none, ")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", environment["HF_ENDPOINT"])
    dead = machine.check_tracking({})
    assert dead.status == "warning" and "does not answer" in dead.finding
