"""A study whose model and data are on the hub, a server of our own: downloaded, trained on, packed, checked."""

import io
import os
import subprocess
import sys

import pandas
import pytest
import yaml
from evidence_archives import BASE, COMMIT, failures, forged, run, set_commit, unpack
from forked import ROOT
from model_hub import PINNED, serving
from studies import changed, load

from mcgrpo.commands.evidence.verify import verify
from mcgrpo.data.toy.models import build
from mcgrpo.files import iter_json_lines, read_json, read_jsonl, write_json
from mcgrpo.records import Example

pytestmark = pytest.mark.slow
OF_A_TOY = load("smoke")["models"]["tiny-random"]["toy"]
MODEL = {"hub": "org/tiny", "config": {"num_hidden_layers": 1}}
STUDY = load("smoke") | {
    "study": "tiny",
    "reports": "reports/tiny",
    "tracking_uri": None,
    "grading": ["paper", "released"],
    "models": {"tiny-random": MODEL},
    "datasets": {"gsm8k": {"task": "gsm8k", "hub": "org/gsm8k", "config": "main", "splits": {"train": {"rows": 8}}}},
}
STUDY = changed(STUDY, {"training": {"max_completion_length": 8, "max_steps": 1}})
STUDY["datasets"]["gsm8k"]["splits"]["test"] = {"rows": 400}
STUDY["experiments"]["main"]["num_generations"] = [2]
AUDIT = "resources/data/tiny/gsm8k.audit.json"
TARGETS = ("reports/tiny/tables.tex", "reports/tiny/claims.csv", f"{BASE}/overlap.json", AUDIT)
CARD = """---
configs:
- config_name: main
  data_files: [{split: train, path: main/train-*}, {split: test, path: main/test-*}]
- config_name: socratic
  data_files: [{split: train, path: socratic/train-*}]
---
"""


def repositories(folder):
    """A model with weights in other formats too, and data as openai/gsm8k has them."""
    build(OF_A_TOY, folder)
    model = {path.name: path.read_bytes() for path in folder.iterdir()}
    model |= {"pytorch_model.bin": b"pickled", "original/consolidated.00.pth": b"pickled"}
    data = {"README.md": CARD.encode(), "socratic/train-00000-of-00001.parquet": b"not asked for"}
    for split in ("train", "test"):
        rows = [row for _, row in iter_json_lines(ROOT / f"tests/data/gsm8k/{split}.jsonl")]
        pandas.DataFrame(rows).to_parquet(content := io.BytesIO())
        data[f"main/{split}-00000-of-00001.parquet"] = content.getvalue()
    return {"models/org/tiny": {"files": model}, "datasets/org/gsm8k": {"files": data}}


def snakemake(folder, *words, **environment):
    """In a process of its own, as the hub's client reads its variables when it is imported."""
    command = [sys.executable, "-m", "snakemake", *words, "--snakefile", ROOT / "Snakefile", "--cores", "2"]
    command += ["--configfile", "study.yaml"]
    environment = os.environ | {"HF_HOME": str(folder / "hf"), **environment}
    return subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def study(made_once):
    """The folder of the study, made while the hub could be asked, and packed after."""

    def make(folder):
        (folder / "study.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
        with serving(repositories(folder / "on-the-hub")) as (environment, _):
            done = snakemake(folder, *TARGETS, **environment)
        assert done.returncode == 0, done.stderr
        for path in folder.glob(f"{BASE}/runs/**/run.json"):
            set_commit(path, COMMIT)
        packed = run("mcgrpo.cli", "bundle", "study.yaml", folder=folder)
        assert packed.returncode == 0, packed.stderr

    return made_once("hub-study", make)


@pytest.fixture
def content(study, tmp_path):
    return unpack(study / "tiny-evidence.tar.xz", tmp_path)


def test_the_model_is_that_of_the_commit_without_weights_in_other_formats(study):
    model = study / "resources/models/tiny/tiny-random"
    there = {str(path.relative_to(model)) for path in model.rglob("*") if path.is_file()} - {".snakemake_timestamp"}
    assert there == {path.name for path in (study / "on-the-hub").iterdir()} | {"source.json"}
    assert read_json(model / "source.json") == {"hub": "org/tiny", "commit": PINNED}


def test_the_data_are_those_of_the_config_in_order(study):
    rows = [*read_jsonl(study / "resources/data/tiny/gsm8k.jsonl", Example)]
    for split, count in (("train", 8), ("test", 6)):
        asked = [row["question"] for _, row in iter_json_lines(ROOT / f"tests/data/gsm8k/{split}.jsonl")]
        assert [row.question for row in rows if row.split == split] == asked[:count]
    assert read_json(study / "resources/data/tiny/gsm8k.source.json")["revision"] == PINNED


def test_without_the_hub_nothing_is_to_be_done(study):
    done = snakemake(study, *TARGETS, "--dry-run")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr, done.stderr


def test_a_model_that_is_not_as_stated_is_refused_before_its_weights(tmp_path):
    stated = changed(STUDY, {"models": {"tiny-random": {"config": {"num_hidden_layers": 2}}}})
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(stated))
    with serving(repositories(tmp_path / "on-the-hub")) as (environment, asked):
        done = snakemake(tmp_path, "resources/models/tiny/tiny-random", **environment)
    told = "models.tiny-random.config.num_hidden_layers: the study states 2, the model's config.json has 1"
    assert done.returncode and told in done.stderr + done.stdout
    assert not [path for path in asked if path.endswith("safetensors")]


def test_its_archive_is_fine_and_says_that_the_study_would_take_more_rows(content):
    checks = {check.topic: check for check in verify(forged(content))}
    assert not [check for check in checks.values() if check.status == "FAILED"]
    told = "gsm8k: 6 rows of test, where the study takes up to 400"
    assert (checks["data"].status, [*checks["data"].culprits]) == ("note", [told])


def said(content, split, **values):
    audit = read_json(content / AUDIT)
    audit["splits"][split] |= values
    write_json(content / AUDIT, audit)


@pytest.mark.parametrize(
    ("split", "values", "told"),
    [
        ("test", {"rows": 5}, f"{AUDIT}: rows of test is 5, by the data 6"),
        ("test", {"golds_unparsable": {"count": 3, "ids": ["a"]}}, "golds_unparsable of test is 3, by the data 0"),
        ("train", {"rows": 9}, f"{AUDIT}: 9 rows of train, where the study takes 8"),
        ("train", {"rows": 7}, "trained on 8 rows of gsm8k, which has 7 by its audit"),
    ],
)
def test_an_audit_that_its_grades_or_trainings_contradict_is_found(content, split, values, told):
    said(content, split, **values)
    found = failures(forged(content), until="data")["data"]
    assert found and told in found[0]
