"""Archives whose data, manifest or audits are not what can be known of them; their hashes fit."""

import pytest
from evidence_archives import BASE, MC_RUN, change, failures, forged

from mcgrpo.commands.evidence.contents import MANIFEST
from mcgrpo.commands.evidence.verify import verify
from mcgrpo.files import iter_json_lines, read_json, write_json, write_jsonl

pytestmark = pytest.mark.slow
DATA = "resources/data/tiny"
GRADES = f"{BASE}/grades/{MC_RUN}/two-step.jsonl"


def test_without_half_of_the_problems_in_all_runs_and_the_audit_is_found(content):
    kept = {row["id"] for _, row in [*iter_json_lines(content / GRADES)][::4]}
    for path in content.glob(f"{BASE}/*grades/**/two-step.jsonl"):
        write_jsonl(path, [row for _, row in iter_json_lines(path) if row["id"] in kept])
    said = read_json(path := content / f"{DATA}/two-step.audit.json")
    rows = said["splits"]["test"]["rows"]
    said["splits"]["test"]["rows"] = len(kept)
    write_json(path, said)
    told = failures(forged(content), until="data")["data"]
    assert told == (f"{DATA}/two-step.audit.json: rows of test is {len(kept)}, by the data {rows}",)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (
            "golds_not_correct",
            {"count": 3, "ids": ["a", "b", "c"]},
            "golds_not_correct of test is 3, by the data 0",
        ),
        ("repeated_questions", {"count": 1, "ids": ["a"]}, "repeated_questions of test is 1, by the data 0"),
        ("source", {"hub": "openai/gsm8k"}, "source, task or splits are not the study's"),
    ],
)
def test_with_another_audit_is_found(content, key, value, told):
    said = read_json(path := content / f"{DATA}/two-step.audit.json")
    (said if key in said else said["splits"]["test"])[key] = value
    write_json(path, said)
    found = failures(forged(content), until="data")
    assert found["data"] == (f"{DATA}/two-step.audit.json: {told}",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("commits", {"f" * 40: 4}),
        ("versions", []),
        ("trainings", 400),
        ("versions", [{"trainings": 4, "trl": "9"}]),
    ],
)
def test_whose_manifest_is_not_that_of_its_trainings_is_found(content, key, value):
    change(content / MANIFEST, **{key: value})
    found = failures(forged(content), until="manifest")["manifest"]
    assert found == (f"{MANIFEST}: {key} is not that of the run.json files",)


def test_packed_by_another_commit_says_so(content):
    change(content / MANIFEST, commit="f" * 40)
    checks = {check.topic: check for check in verify(forged(content))}
    assert checks["commits"].status == "note" and "f" * 40 in checks["commits"].culprits[0]


def test_with_other_golds_or_other_training_data_is_found(content):
    grades = [row for _, row in iter_json_lines(content / GRADES)]
    write_jsonl(content / GRADES, [row | {"answer": "7"} for row in grades])
    record = read_json(path := content / f"{BASE}/runs/{MC_RUN}/run.json")
    record["outcome"]["data"]["sha256"] = "0" * 64
    write_json(path, record)
    assert failures(forged(content), until="data")["data"] == (
        f"{MC_RUN}: trained on another two-step than the study's toy data",
        f"{GRADES}:1: is of no problem of two-step, or has another gold",
    )


def test_with_other_golds_of_the_rollouts_for_sign_flips_alone_is_found(content):
    (path,) = content.glob(f"{BASE}/rollout-grades/**/two-step.jsonl")
    write_jsonl(path, [row | {"answer": "7"} for _, row in iter_json_lines(path)])
    (told,) = failures(forged(content), until="data")["data"]
    assert told == f"{path.relative_to(content)}:1: is of no problem of two-step, or has another gold"


def test_with_other_overlaps_is_found(content):
    said = read_json(path := content / f"{BASE}/overlap.json")
    said["toy-qwen3"]["three-step"]["normalised"] = {"count": 1, "ids": ["a"]}
    write_json(path, said)
    told = f"{BASE}/overlap.json: that of toy-qwen3 and three-step is not the data's"
    assert failures(forged(content), until="data")["data"] == (told,)
