"""What the doctor says, of real files and processes; the hub is a server of our own, nvidia-smi a script."""

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fake_hub
import pytest
import runs
import studies
import yaml

from mcgrpo.commands.doctor import demands, machine, packages
from mcgrpo.commands.doctor.checks import Check, summary
from mcgrpo.commands.doctor.hub import check_hub
from mcgrpo.commands.forecast.hub_answers import Answer
from mcgrpo.commands.forecast.sizes import Model, Sizes, sizes
from mcgrpo.study.plan import runs as runs_of

ROOT = Path(__file__).parents[2]
MINI = studies.load("mini")
PINNED = fake_hub.COMMIT
TRAINED = [run for run in runs_of(MINI) if run.training]


def doctor(*arguments, cwd, **environment):
    command = [sys.executable, "-m", "mcgrpo.cli", "doctor", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment})


def lines_of(printed):
    return {line.split(":")[0].split(maxsplit=1)[1]: line for line in printed.splitlines() if ":" in line}


def test_the_mini_study_lacks_nothing_here(tmp_path):
    done = doctor(ROOT / "config/mini.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lacking " not in done.stdout.split("\n\n")[0]
    assert f"mini: {len(runs_of(MINI))} runs, {len(TRAINED)} of them trainings" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_broken_study_is_what_is_lacking(tmp_path):
    (tmp_path / "study.yaml").write_text("study: x\nsedes: [1]")
    done = doctor("study.yaml", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout.startswith("lacking  study     the study: unknown key 'sedes'")


HUB = {
    "models/org/open": {"safetensors": {"parameters": {"F32": 100}, "total": 100}},
    "models/org/gated": {"gated": "manual"},
    "datasets/org/data": {},
}


def hub_study(folder):
    """A study of four models of the hub, one of which can be had at what it is pinned at, and a data set."""
    config = studies.load("smoke")
    pins = {"open": PINNED, "gated": None, "missing": None, "moved": "v9"}
    names = {"moved": "open"}
    config["models"] = {
        name: {"hub": f"org/{names.get(name, name)}", **({"revision": pin} if pin else {})}
        for name, pin in pins.items()
    }
    config["datasets"] = {"data": {"task": "gsm8k", "hub": "org/data"}}
    setting = {"dataset": "data", "prompt": "plain", "benchmarks": {"in": ["data"]}}
    config["settings"] = {name: {**setting, "model": name} for name in pins}
    config["experiments"]["main"]["settings"] = list(pins)
    (folder / "study.yaml").write_text(yaml.safe_dump(config))
    return config


def test_the_hub_says_what_can_be_had(tmp_path):
    hub_study(tmp_path)
    with fake_hub.serving(HUB) as (environment, asked):
        done = doctor("study.yaml", cwd=tmp_path, HF_HOME=str(tmp_path), **environment)
    found = lines_of(done.stdout)
    page = f"{environment['HF_ENDPOINT']}/org/gated"
    assert done.returncode == 1, done.stderr
    assert found["model     open"].startswith("ok") and f"pinned at {PINNED[:8]}" in found["model     open"]
    assert f"accept the licence at {page}, then `hf auth login`" in found["model     gated"]
    assert all(found[f"model     {name}"].startswith("lacking") for name in ("gated", "missing", "moved"))
    assert "no such repository, or a private one" in found["model     missing"]
    assert "no revision 'v9' there" in found["model     moved"]
    assert found["data set  data"].startswith("warning") and "`mcgrpo lock" in found["data set  data"]
    assert "/api/models/org/gated/auth-check" in asked and "/api/models/org/open/auth-check" not in asked


def test_without_the_hub_the_cache_is_looked_at(tmp_path):
    config = hub_study(tmp_path)
    config["datasets"]["data"]["revision"] = PINNED
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "datasets/org___data").mkdir(parents=True)
    snapshot = tmp_path / "hub/models--org--open/snapshots" / PINNED
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"")
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"}):
        done = doctor("study.yaml", cwd=tmp_path, HF_HOME=str(tmp_path), HF_DATASETS_CACHE="", **environment)
        found = lines_of(done.stdout)
        assert done.returncode == 1 and "cannot be asked" in done.stdout
        assert f"in the cache: {snapshot} -> name that as `folder`" in done.stdout
        assert found["data set  data"].startswith("warning")
        assert found["model     gated"].startswith("lacking") and "nor in the cache" in found["model     gated"]


def test_what_has_been_made_is_not_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = hub_study(tmp_path)
    folder = tmp_path / "resources/models/smoke"
    for name, spec in config["models"].items():
        (folder / name).mkdir(parents=True)
        (folder / name / "source.json").write_text(json.dumps({**spec, "commit": PINNED}))
    data = tmp_path / "resources/data/smoke/data.jsonl"
    data.parent.mkdir(parents=True)
    row = {"question": "1 + 1?", "answer": "2"}
    splits = enumerate(["train", "train", "test"])
    data.write_text("".join(json.dumps({"id": str(n), "split": split, **row}) + "\n" for n, split in splits))
    data.with_name("data.source.json").write_text(json.dumps({**config["datasets"]["data"], "revision": PINNED}))
    known = sizes(config)
    assert known.hub == {} and known.rows["data"] == {"train": 2, "test": 1}
    assert {check.status for check in check_hub(config, known)} == {"ok"}
    config["models"]["open"]["revision"] = "d" * 40
    assert list(sizes(config).hub) == [("models", "open")]


ROW = '{"question": "1 + 1?", "answer": "#### 2"}\n'


@pytest.mark.parametrize(
    ("train", "test", "finding"),
    [
        (ROW, ROW, "gsm8k: {folder}, 1 train, 1 test"),
        (ROW, "", "gsm8k: {folder}: split 'test' is empty"),
        ("", ROW, "gsm8k: {folder}: split 'train' is empty"),
        (ROW + ROW[:9], ROW, "gsm8k: {folder}/train.jsonl:2: not valid JSON"),
        (ROW, "[1]\n", "gsm8k: {folder}/test.jsonl:1: a JSON object is expected, not list"),
        (ROW, ROW.replace("question", "text"), "gsm8k: {folder}/test.jsonl:1: no text under 'question'"),
        (ROW, None, "gsm8k: {folder}/test.jsonl: no such file"),
        (ROW, b"\xff\n", "gsm8k: {folder}/test.jsonl:1: not UTF-8 text"),
    ],
)
def test_a_local_data_set_is_read(tmp_path, monkeypatch, train, test, finding):
    monkeypatch.chdir(tmp_path)
    config = studies.load("smoke")
    config["datasets"]["gsm8k"]["folder"] = str(tmp_path)
    for name, content in (("train", train), ("test", test)):
        if content is not None:
            (tmp_path / f"{name}.jsonl").write_bytes(content if isinstance(content, bytes) else content.encode())
    (check,) = [check for check in check_hub(config, sizes(config)) if check.topic == "data set"]
    assert check.finding.startswith(finding.format(folder=tmp_path))
    assert (check.status == "ok") == ("1 test" in finding)


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        ("{", "data.jsonl:1: not valid JSON"),
        ("", "split 'train' is empty in"),
        ('{"split": "test"}\n', "data.jsonl:1: "),
    ],
)
def test_a_data_set_that_was_made_and_is_broken_is_lacking(tmp_path, monkeypatch, content, finding):
    monkeypatch.chdir(tmp_path)
    config = hub_study(tmp_path)
    data = tmp_path / "resources/data/smoke/data.jsonl"
    data.parent.mkdir(parents=True)
    data.write_text(content)
    data.with_name("data.source.json").write_text(json.dumps({**config["datasets"]["data"], "revision": PINNED}))
    (check,) = [check for check in check_hub(config, replace(sizes(config), hub={})) if check.topic == "data set"]
    assert check.status == "lacking" and finding in check.finding


def test_a_split_that_is_empty_on_the_hub_is_lacking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = hub_study(tmp_path)
    known = Sizes(hub={("datasets", "data"): Answer(rows={"train": 8, "test": 0})})
    (check,) = [check for check in check_hub(config, known) if check.topic == "data set"]
    assert check.status == "lacking" and "split 'test' is empty" in check.finding


def test_a_schedule_that_transformers_does_not_know_is_a_fault_of_the_study(tmp_path):
    path = tmp_path / "top.yaml"
    path.write_text("training: {lr_scheduler_type: cosin}")
    done = doctor(ROOT / "config/mini.yaml", path, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "lacking  study     training.lr_scheduler_type: 'cosin' is not one of ['linear', 'cosine'"
    )


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
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_gpus_are_counted_and_the_smallest_is_what_must_do(two_gpus, monkeypatch):
    assert machine.check_gpus({"gpus": 2}) == Check(
        "ok", "GPUs", "2 (Pretend) here, one training takes 2: 1 at a time with --resources gpu=2"
    )
    assert machine.check_gpus({"gpus": 4}).status == "lacking"
    assert machine.check_gpus({}).status == "ok"
    assert machine.device_memory() == 40 * 2**30
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert machine.check_gpus({"gpus": 2}).status == "lacking"
    assert machine.device_memory() == 80 * 2**30
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert machine.check_gpus({"gpus": 1}).status == "lacking" and "7" in machine.check_gpus({"gpus": 1}).finding


def memory_check(billions, **training):
    run = replace(runs.RUN, training={"per_device_train_batch_size": 4, "max_completion_length": 9, **training})
    known = Sizes({"toy": Model(int(billions * 1e9))}, {"sums": {}})
    (found,) = demands.check_memory({"gpus": 1}, [run], known)
    return found


def test_memory_is_compared_with_the_device(two_gpus):
    assert memory_check(2).status == "ok"  # 30 of 40 GiB
    assert memory_check(2.5).status == "warning"  # 37
    assert memory_check(3).status == "lacking"
    assert memory_check(2, use_vllm=True).status == "lacking"  # 30 of what vLLM leaves
    assert "size of toy" in memory_check(0).finding and memory_check(0).status == "warning"


def test_without_a_gpu_memory_is_said_but_not_judged(monkeypatch):
    monkeypatch.setenv("MCGRPO_DEVICES", "")
    assert "needs a GPU of about 30 GiB; none here to compare with" in memory_check(2).finding


def test_a_data_set_smaller_than_a_batch_trains_nothing():
    config = studies.changed(MINI, {"datasets": {"two-step": {"splits": {"train": {"rows": 7}}}}})
    config = studies.changed(config, {"training": {"max_steps": None, "num_train_epochs": 1}})
    found = list(demands.check_batches(config, runs_of_trained(config), sizes(config)))
    short = [check for check in found if check.status == "lacking"]
    assert short and all("= 8 prompts x G=" in check.finding for check in short)
    assert any("fixed-rows" in check.finding for check in found if check.status == "ok")  # 2 prompts at a time


def runs_of_trained(config):
    return [run for run in runs_of(config) if run.training]


def test_batches_are_said_once_for_all_that_go_alike():
    found = [str(check) for check in demands.check_batches(MINI, TRAINED, sizes(MINI))]
    assert len(found) == 4
    assert any("1 process(es) x 16 rows x 1 accumulated = 2 prompts x G=8 a step, 160 steps" in line for line in found)


def test_disk_that_does_not_do_is_lacking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = sizes(MINI)
    assert demands.check_disk(MINI, TRAINED, known).status == "ok"
    huge = replace(known, models={**known.models, "toy-qwen3": Model(10**12)})
    assert demands.check_disk(MINI, TRAINED, huge).status == "lacking"
    unsaid = replace(known, hub={("models", "toy-qwen3"): Answer("unreachable")})
    assert demands.check_disk(MINI, TRAINED, unsaid).status == "warning"


def test_sharding_needs_processes():
    run = replace(runs.RUN, training={"sharding": "zero3"})
    assert [check.status for check in demands.check_sharded({"gpus": 1}, [run])] == ["lacking"]
    assert list(demands.check_sharded({"gpus": 2}, [run])) == []


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make a version of a package look installed, by its metadata."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, version):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    return install


def by_topic(config, training):
    run = replace(runs.RUN, training=training)
    return {check.topic: check for check in packages.check_packages({**MINI, **config}, [run])}


def test_packages_are_those_that_the_project_declares(install):
    assert by_topic({}, {})["packages"].status == "ok"
    install("trl", "0.9.0")
    found = by_topic({}, {})["packages"]
    assert found.status == "lacking" and "trl 0.9.0 is installed, ==1.16.0 is needed" in found.finding


def test_settings_ask_for_packages_of_their_own(install):
    install("vllm", "0.1.0")
    install("deepspeed", "0.19.8")
    install("flash_attn", "2.8.0")
    asked = {"use_vllm": True, "sharding": "zero3", "attn_implementation": "flash_attention_2"}
    found = by_topic({"gpus": 2}, asked)
    assert found["vllm"].status == "lacking" and "0.1.0 is installed" in found["vllm"].finding
    assert found["deepspeed"].status == found["flash-attn"].status == "ok" and "attention" not in found
    assert not {"vllm", "deepspeed", "peft", "flash-attn", "torch"} & by_topic({}, {}).keys()


def test_a_torch_for_cpus_is_no_use_to_gpus(install):
    install("torch", "2.13.0+cpu")
    assert by_topic({"gpus": 1}, {})["torch"].status == "lacking"
    assert by_topic({"gpus": 0}, {})["packages"].status == "ok"


def test_programs_that_are_not_there_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(check.status, check.topic) for check in machine.check_programs()] == [
        ("warning", "git"),
        ("warning", "latexmk"),
    ]


def tracking(monkeypatch, store):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return machine.check_tracking({"tracking_uri": store})


def test_a_tracking_server_is_asked(monkeypatch):
    with fake_hub.serving({}) as (environment, asked):
        server = environment["HF_ENDPOINT"]
        assert "answers with 404" in tracking(monkeypatch, server).finding and asked == ["/health"]
    dead = tracking(monkeypatch, server)
    assert dead.status == "warning" and "does not answer" in dead.finding


@pytest.mark.parametrize("store", [None, "sqlite:///mlflow.db", "databricks"])
def test_other_stores_are_not(monkeypatch, tmp_path, store):
    monkeypatch.chdir(tmp_path)
    assert tracking(monkeypatch, store).status == "ok"


def test_the_users_store_goes_before_the_studys(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mine.db")
    assert machine.check_tracking({"tracking_uri": "sqlite:///other.db"}).finding == "sqlite:///mine.db"


def test_a_summary_counts():
    checks = [Check("ok", "a", ""), Check("lacking", "b", ""), Check("warning", "c", "")]
    assert summary(checks) == "1 lacking, 1 to look at, 1 fine."
    assert summary(checks[:1]) == "All 1 checks are fine."
