"""The checks of `mcgrpo doctor`, with real files and processes; the hub is a server of our own."""

import json
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import runs
import studies
import yaml

from mcgrpo.commands import contexts
from mcgrpo.commands import doctor as checks
from mcgrpo.data.toy.models import build
from mcgrpo.files import write_jsonl
from mcgrpo.records import Example
from mcgrpo.study.plan import runs as runs_of

ROOT = Path(__file__).parents[2]
MINI = studies.load("mini")
PINNED = "c" * 40


class Hub(BaseHTTPRequestHandler):
    """The few routes of the hub that are asked here; the client is the real one.

    `server.repositories`: "models/org/name" -> what the hub says of it; with `gated`, nobody may read its files.
    """

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.asked.append(path)
        if path.endswith("/config.json"):
            name, _, rest = path[1:].partition("/resolve/")
            config = self.server.repositories.get(f"models/{name}", {}).get("config.json")
            return self._send(config) if config else self._refuse(404, "EntryNotFound")
        if not path.startswith("/api/"):
            return self._refuse(404, "EntryNotFound")
        rest = path.removeprefix("/api/")
        name, _, revision = rest.removesuffix("/auth-check").partition("/revision/")
        repository = self.server.repositories.get(name)
        if repository is None:
            return self._refuse(401, "RepoNotFound")
        if revision not in ("", "main", PINNED):
            return self._refuse(404, "RevisionNotFound")
        if rest.endswith("/auth-check"):
            return self._refuse(403, "GatedRepo") if repository.get("gated") else self._send({})
        return self._send({"id": name.partition("/")[2], "sha": PINNED, "private": False, "siblings": [], **repository})

    def _refuse(self, code, why):
        self._send({"error": why}, {"X-Error-Code": why}, code)

    def _send(self, content, headers=(), code=200):
        body = json.dumps(content).encode()
        self.send_response(code)
        for key, value in {**dict(headers), "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def serving(repositories):
    """A hub with these repositories: its environment for a process that is to ask it, and what it was asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.repositories, server.asked = repositories, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HUB_OFFLINE": "0"}, server.asked
    finally:
        server.shutdown()
        server.server_close()


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
        (source.parent / "model.safetensors").touch()
    data = here / "resources/data/smoke/data.jsonl"
    data.parent.mkdir(parents=True)
    data.write_text(content.replace("ID", '"id": "0", "question": "1 + 1?", "answer": "2"'))
    data.with_name("data.source.json").write_text(json.dumps({**config["datasets"]["data"], "revision": PINNED}))
    monkeypatch.setenv("HF_ENDPOINT", "http://[::1]:9")
    found = {check.topic: check for check in checks.check_hub(config)}
    assert (found["data set"].status, fault in found["data set"].finding) == ("error" if fault else "ok", True)
    assert found["model"].status == "ok"


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


@pytest.mark.parametrize(
    ("study", "visible", "status", "words"),
    [
        ({}, None, "ok", "2; none is needed"),
        ({"gpus": 4}, None, "error", "2; one training takes 4"),
        ({"gpus": 2}, "0", "error", "1; one training takes 2"),
        ({"gpus": 2}, None, "ok", "2; one training takes 2"),
    ],
)
def test_gpus_of_this_machine_are_counted(monkeypatch, study, visible, status, words):
    monkeypatch.setenv("MCGRPO_DEVICES", "0,1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = checks.check_gpus(studies.changed(MINI, study))
    assert found.status == status and found.finding.startswith(words)


def test_missing_programs_are_warnings(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.topic: check.status for check in checks.check_machine(MINI)}
    assert found["git"] == found["latexmk"] == "warning"


def test_only_a_tracking_server_is_asked(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert checks.check_tracking({"tracking_uri": "sqlite:///mlflow.db"}).finding == "sqlite:///mlflow.db"
    with serving({}) as (environment, asked):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", environment["HF_ENDPOINT"])  # before the study's own
        assert "HTTP Error 404" in checks.check_tracking({"tracking_uri": None}).finding and asked == ["/health"]
    dead = checks.check_tracking({})
    assert dead.status == "warning" and "does not answer" in dead.finding
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")  # as for the workflow: no store, whatever the study says
    assert checks.check_tracking({"tracking_uri": "sqlite:///mlflow.db"}).finding.startswith("none, ")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make a version of a package look installed, by its metadata."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(**versions):
        for name, version in versions.items():
            metadata = tmp_path / f"{name}-{version}.dist-info/METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    return install


def packages(training=(), **config):
    found = checks.check_packages({**MINI, **config}, [replace(runs.RUN, training=dict(training))])
    return {check.topic: check for check in found}


def test_packages_are_those_that_the_project_declares(install):
    assert packages()["packages"].status == "ok"
    install(trl="0.9.0")
    found = packages()["packages"]
    assert found.status == "error" and "trl 0.9.0 is installed, ==1.16.0 is needed" in found.finding


def test_settings_ask_for_packages_of_their_own(install):
    install(vllm="0.1.0", flash_attn="2.8.0")
    asked = {"use_vllm": True, "attn_implementation": "flash_attention_2"}
    found = packages(asked, gpus=2)
    assert found["vllm"].status == "error" and "0.1.0 is installed" in found["vllm"].finding
    assert found["flash-attn"].status == "ok"
    assert not {"vllm", "deepspeed", "peft", "flash-attn", "torch"} & packages().keys()


def test_a_torch_for_cpus_is_no_use_to_gpus(install):
    install(torch="2.13.0+cpu")
    assert packages(gpus=1)["torch"].status == "error"
    assert packages(gpus=0)["packages"].status == "ok"
