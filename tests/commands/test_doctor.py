"""What `mcgrpo doctor` says of a study, its models and its data, with real files and processes.

The hub is a server of our own. Of the machine: test_doctor_machine.py.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import studies
import yaml
from model_hub import PINNED, serving

from mcgrpo.commands import contexts
from mcgrpo.commands import doctor as checks
from mcgrpo.data.toy.models import build
from mcgrpo.files import write_jsonl
from mcgrpo.records import Example
from mcgrpo.study.plan import runs as runs_of

ROOT = Path(__file__).parents[2]
MINI = studies.load("mini")


def doctor(study, **environment):
    """Exit code, and the line of each topic and name."""
    command = [sys.executable, "-m", "mcgrpo.cli", "doctor", str(study)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, {
        line.split(":")[0].split(maxsplit=1)[1]: line for line in done.stdout.splitlines() if ":" in line
    }


def in_process(monkeypatch, capsys, study):
    """Exit code and output; as a process: below, where the hub is asked, and in tests/commands/test_cli.py."""
    monkeypatch.setattr("sys.argv", ["mcgrpo doctor", str(study)])
    with pytest.raises(SystemExit) as ended:
        checks.main()
    return ended.value.code, capsys.readouterr().out


def test_the_mini_study_can_run_here(here, monkeypatch, capsys):
    code, out = in_process(monkeypatch, capsys, ROOT / "config/mini.yaml")
    assert code == 0 and not any(line.startswith("error") for line in out.splitlines()), out
    trained = sum(bool(run.training) for run in runs_of(MINI))
    assert f"mini: {len(runs_of(MINI))} runs, {trained} of them trainings" in out
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
    repositories = {"models/org/open": {}, "models/org/gated": {"gated": "manual"}, "datasets/org/data": {}}
    with serving(repositories) as (environment, asked):
        code, found = doctor("study.yaml", HF_HOME=str(here), **environment)
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
    assert "/api/models/org/gated/auth-check" in asked


@pytest.mark.slow
def test_the_contexts_of_models_are_asked_of_the_hub(here):
    config, positions = hub_study(here), "max_position_embeddings"
    real = {"roomy": 4096, "cut": 40, "tight": 25, "other": 4096}
    config["models"] = {name: {"hub": f"org/{name}"} for name in (*real, "silent")}
    config["models"]["other"]["config"] = {positions: 8192}
    config["settings"] = {name: {**config["settings"]["open"], "model": name} for name in config["models"]}
    config["experiments"]["main"]["settings"] = [*config["models"]]
    config["training"]["max_completion_length"], config["evaluation"]["max_new_tokens"] = 36, 64
    (here / "study.yaml").write_text(yaml.safe_dump(config))
    repositories = {f"models/org/{name}": {"config.json": {positions: tokens}} for name, tokens in real.items()}
    with serving(repositories | {"models/org/silent": {}, "datasets/org/data": {}}) as (environment, _):
        code, found = doctor("study.yaml", HF_HOME=str(here), **environment)
    for name, status, words in (
        ("roomy", "ok", "4,096 tokens, more than is asked for"),
        ("cut", "warning", "data: tokens of a completion: 64 asked, fewer than 40 fit its context"),
        ("tight", "error", "max_completion_length=36 tokens do not fit the model's context of 25 beside a prompt"),
        ("other", "error", "config.max_position_embeddings: the study states 8192, the model's config.json has 4096"),
        ("silent", "warning", "not known, so its jobs check lengths when they start"),
    ):
        line = found[f"context   {name}"]
        assert line.startswith(status) and words in line
    assert code == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://[::1]:9"}]
)
def test_a_hub_that_does_not_answer_is_an_error(here, environment):
    hub_study(here, revision=PINNED)
    code, found = doctor("study.yaml", HF_HOME=str(here), **environment)
    assert code == 1
    for name in ("model     open", "data set  data"):
        assert found[name].startswith("error") and "let this machine reach" in found[name]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"split": "train", ID}\n{"split": "test", ID}\n', ""),
        ("{", "data.jsonl:1: not valid JSON"),
        ("", "split 'train' is empty"),
    ],
)
def test_what_has_been_made_is_read_and_not_asked_for(here, monkeypatch, content, fault):
    config = hub_study(here)
    for name, spec in config["models"].items():
        source = here / "resources/models/smoke" / name / "source.json"
        source.parent.mkdir(parents=True)
        source.write_text(json.dumps({**spec, "commit": PINNED}))
        (source.parent / "config.json").touch()
        for file in ("model.safetensors", "tokenizer.json"):
            (source.parent / file).touch()
    data = here / "resources/data/smoke/data.jsonl"
    data.parent.mkdir(parents=True)
    data.write_text(content.replace("ID", '"id": "0", "question": "1 + 1?", "answer": "2"'))
    data.with_name("data.source.json").write_text(json.dumps({**config["datasets"]["data"], "revision": PINNED}))
    monkeypatch.setenv("HF_ENDPOINT", "http://[::1]:9")
    found = [*checks.check_hub(config)]
    (of_data,) = (check for check in found if check.topic == "data set")
    assert (of_data.status, fault in of_data.finding) == ("error" if fault else "ok", True)
    assert {check.status for check in found if check.topic == "model"} == {"ok"}


def test_only_what_runs_use_is_looked_at(here, monkeypatch):
    """An overlay leaves a part of a study out, and not the models and data sets of that part."""
    config = hub_study(here)
    config["experiments"]["main"]["settings"] = ["open"]
    config["datasets"]["other"] = {"task": "gsm8k", "hub": "org/other"}
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert [check.finding.split(":")[0] for check in checks.check_hub(config)] == ["open", "data"]


def test_a_folder_of_a_model_has_weights_and_a_tokenizer(here):
    config, folder = hub_study(here), here / "local"
    config["models"], (setting, *_) = {"local": {"folder": str(folder)}}, config["settings"].values()
    config["settings"] = {"local": {**setting, "model": "local"}}
    config["experiments"]["main"]["settings"] = ["local"]
    for file, fault in (
        ("", "there is no folder"),
        ("config.json", "no config.json with safetensors files in"),
        ("model.safetensors", "no tokenizer in"),
        ("tokenizer.json", ""),
    ):
        if file:
            folder.mkdir(exist_ok=True)
            (folder / file).touch()
        found = next(check for check in checks.check_hub(config) if check.topic == "model")
        assert (found.status, fault in found.finding) == ("error" if fault else "ok", True)


def test_prompts_are_counted_where_model_and_data_are_here(here):
    config = hub_study(here)
    config["models"], (setting, *_) = {"tiny": {"folder": str(here / "tiny")}}, config["settings"].values()
    config["settings"] = {"tiny": {**setting, "model": "tiny"}}
    config["experiments"]["main"]["settings"] = ["tiny"]
    config["training"] |= {"max_completion_length": 8, "max_prompt_length": 20}
    build({"architecture": "llama", "hidden_size": 32, "heads": 1, "layers": 1, "tokenizer": "bytes"}, here / "tiny")
    rows = [Example(f"{n}", split, "q" * n, "1") for split in ("train", "test") for n in (10, 20, 21)]
    write_jsonl(here / "resources/data/smoke/data.jsonl", rows)

    def found(context, new_tokens):
        fields = json.loads((here / "tiny/config.json").read_text()) | {"max_position_embeddings": context}
        (here / "tiny/config.json").write_text(json.dumps(fields))
        config["evaluation"]["max_new_tokens"] = new_tokens
        return list(contexts.check_contexts(config))

    left_out = ("warning", "tiny: data: 1 prompts have over 20 tokens", "not trained on (max_prompt_length)")
    cut = ("warning", "tiny: data: tokens of a completion: 64 asked, 11 fit its context", "tables say so")
    assert found(32, 64) == [left_out, cut]
    assert found(32, 11) == [left_out]
    ((status, finding, _),) = found(21, 4)
    assert status == "error" and "max_completion_length=8 + max_prompt_length=20 tokens do not fit" in finding
    config["training"].pop("max_prompt_length")
    ((status, finding, _),) = found(28, 4)
    assert status == "error" and "data.jsonl:3: the prompt of question '21' has 21 tokens" in finding


ROW = '{"question": "1 + 1?", "answer": "#### 2"}\n'


@pytest.mark.parametrize(("test", "fault"), [(ROW, ""), (ROW + ROW[:20], "/test.jsonl:2: not valid JSON")])
def test_a_local_data_set_is_read(here, test, fault):
    config = studies.load("smoke")
    config["datasets"]["gsm8k"]["folder"] = str(here)
    (here / "train.jsonl").write_text(ROW)
    (here / "test.jsonl").write_text(test)
    (check,) = [check for check in checks.check_hub(config) if check.topic == "data set"]
    assert check.status == ("error" if fault else "ok") and check.finding.startswith(f"gsm8k: {here}{fault}")
