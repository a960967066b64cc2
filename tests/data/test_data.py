import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcgrpo.data import datasets as data
from mcgrpo.data import fetch as fetching
from mcgrpo.files import RecordError, read_json, read_jsonl
from mcgrpo.records import Example
from mcgrpo.study.hub import HubError
from mcgrpo.study.settings import StudyError

GSM8K = Path(__file__).parent / "gsm8k"
MATH = {"problem": "What is $1+1$?", "level": "Level 1", "type": "Algebra", "solution": "It is $\\boxed{2}$."}


@pytest.fixture(autouse=True)
def no_cache_but_the_tests(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


def folder(tmp_path, test, train=None):
    """A data folder with the given rows (or raw text) as its splits."""
    for name, rows in {"test": test, "train": train}.items():
        if rows is not None:
            text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text(text)
    splits = {"test": {}} if train is None else {"train": {}, "test": {}}
    return {"folder": str(tmp_path), "splits": splits}


def test_gsm8k_from_a_local_folder():
    found = data.examples({"folder": str(GSM8K)})
    assert [example.split for example in found] == ["train"] * 10 + ["test"] * 6
    first = found[0]
    assert (first.id, first.answer) == ("train-0", "36")
    assert first.question.startswith("A baker sells 12 loaves")
    assert first.solution.endswith("<<12+24=36>>36 loaves.")
    assert all(example.answer.lstrip("-").replace(",", "").isdigit() for example in found)
    assert "1,400" in {example.answer for example in found}  # as it is written: the grader takes 1400 for the same


def test_a_split_under_another_name_and_the_first_rows():
    spec = {"splits": {"train": {"rows": 3}, "test": {"name": "train", "rows": 2}}}
    for origin in ("folder", "hub"):
        found = data.examples({origin: str(GSM8K), **spec})
        assert [example.id for example in found] == ["train-0", "train-1", "train-2", "test-0", "test-1"]
        assert found[3].question == found[0].question


FROM_THE_HUB = {"solution": "s", "url": "u"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (MATH, ("test-0", MATH["problem"], "", MATH["solution"])),
        (
            MATH | {"answer": "2", "unique_id": "algebra/1.json"},
            ("algebra/1.json", MATH["problem"], "2", MATH["solution"]),
        ),
        (FROM_THE_HUB | {"id": 60, "problem": " p ", "answer": "204", "year": "2024"}, ("60", "p", "204", "s")),
        (FROM_THE_HUB | {"id": 0, "problem": "p", "answer": 27.0}, ("0", "p", "27", "s")),
        (FROM_THE_HUB | {"id": 0, "question": "p", "answer": 27}, ("0", "p", "27", "s")),
        ({"question": "p", "answer": 0.5}, ("test-0", "p", "0.5", "")),
        ({"question": "p", "answer": 0.0}, ("test-0", "p", "0", "")),
    ],
    ids=["MATH", "MATH-500", "AIME", "AMC", "a whole number", "a fraction", "zero"],
)
def test_the_columns_of_a_row(tmp_path, row, expected):
    id, question, answer, solution = expected
    assert data.examples(folder(tmp_path, [row])) == [Example(id, "test", question, answer, solution)]


def test_toy():
    spec = {"toy": {"kind": "two-step", "seed": 1}, "splits": {"train": {"rows": 5}, "test": {"rows": 3}}}
    assert [example.split for example in data.examples(spec)] == ["train"] * 5 + ["test"] * 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('{"question": "q", "answer": "1"}\n{"question": ', r"test\.jsonl:2: not valid JSON"),
        ([{"prompt": "q", "answer": "1"}], r"test\.jsonl:1: no text under 'question' or 'problem' \(columns: prompt,"),
        ([{"question": "q"}], r"test\.jsonl:1: neither 'answer' nor 'solution' \(columns: question\)"),
        ([{"question": "q", "answer": ""}], r"test\.jsonl:1: neither 'answer' nor 'solution'"),
        ([{"question": "q", "answer": ["1"]}], r"test\.jsonl:1: 'answer' should be text or a number"),
        ([{"question": "q", "answer": "1", "solution": ["s"]}], r"test\.jsonl:1: .*'solution' text"),
        ([{"question": " ", "answer": "1"}], r"test\.jsonl:1: no text under 'question' or 'problem'"),
        ([{"question": "q", "answer": True}], r"test\.jsonl:1: 'answer' is True, which is no number"),
        ([{"question": "q\ud800", "answer": "1"}], r"test\.jsonl:1: '\\ud800' is half a character"),
        ([{"question": "q", "answer": "1", "id": "a\ud800"}], r"test\.jsonl:1: '\\ud800' is half a character"),
        ([{"question": "q", "answer": "1\u200b2"}], r"test\.jsonl:1: 'answer' holds '\\u200b', which is not seen"),
        ([{"question": "q", "answer": "so #### 1\0"}], r"test\.jsonl:1: 'answer' holds '\\x00', which is not seen"),
        ([{"question": "q", "problem": "p", "answer": "1"}], r"test\.jsonl:1: 'question' and 'problem' differ"),
        ('{"question": "q", "answer": NaN}', r"test\.jsonl:1: 'answer' is nan, which is no number"),
        ('{"question": "q", "answer": ' + "1" * 5000 + "}", r"test\.jsonl:1: cannot be read \(Exceeds the limit"),
        (
            '{"question": "q", "answer": "1", "answer": "2"}',
            r"test\.jsonl:1: cannot be read \(key 'answer' stands twice",
        ),
        ('{"question": ' + "[" * 100_000, r"test\.jsonl:1: cannot be read \(maximum recursion depth"),
        ([], "split 'test' is empty"),
        (
            [{"id": i, "question": "q", "answer": "1"} for i in (7, 8, 7)],
            r"test\.jsonl:3: id '7' is already used at .*test\.jsonl:1",
        ),
    ],
)
def test_bad_rows_are_named(tmp_path, rows, message):
    with pytest.raises(RecordError, match=message) as caught:
        data.examples(folder(tmp_path, rows))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_missing_hub_split_is_named():
    with pytest.raises(HubError, match=r"gsm8k, split 'valid': .*valid"):
        data.examples({"hub": str(GSM8K), "splits": {"test": {"name": "valid"}}})


def test_a_folder_in_place_of_a_repository_is_read_as_it_is_now(tmp_path, monkeypatch):
    """`datasets` keeps a copy by the folder's last name and its README, which tell neither rows nor folders apart."""
    files = [{"split": "test", "path": "test.jsonl"}]
    readme = f"---\n{json.dumps({'configs': [{'config_name': 'main', 'data_files': files}]})}\n---\n"
    spec = {"task": "math", "hub": str(tmp_path / "first/sums"), "config": "main", "splits": {"test": {}}}
    for place, number in [("first", 2), ("first", 3), ("second", 4)]:
        (tmp_path / place / "sums").mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "sums/README.md").write_text(readme)
        (tmp_path / place / "sums/test.jsonl").write_text(json.dumps(MATH | {"answer": str(number)}) + "\n")
        spec["hub"] = str(tmp_path / place / "sums")
        assert [example.answer for example in data.examples(spec)] == [str(number)]
    output = tmp_path / "made/sums.jsonl"
    monkeypatch.setattr("sys.argv", ["data", "--spec", json.dumps(spec), "--output", str(output)])
    data.main()
    rows = hashlib.sha256((tmp_path / "second/sums/test.jsonl").read_bytes()).hexdigest()
    assert read_json(output.with_suffix(".source.json"))["sha256"]["test.jsonl"] == rows


def test_a_hub_revision_is_resolved_to_its_commit(monkeypatch):
    info = SimpleNamespace(sha="c" * 40)
    hub = {("org/sums", None): info}
    api = SimpleNamespace(dataset_info=lambda name, revision: hub[name, revision])
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: api)
    spec = {"hub": "org/sums", "task": "gsm8k"}
    assert data.resolve(spec) == spec | {"revision": info.sha}
    assert data.resolve({"folder": "x"}) == {"folder": "x"}


def test_the_command_writes_examples_and_their_source(tmp_path, monkeypatch):
    spec = json.dumps({"task": "gsm8k", "folder": str(GSM8K)})
    monkeypatch.setattr("sys.argv", ["data", "--spec", spec, "--output", str(tmp_path / "gsm8k.jsonl")])
    data.main()
    assert len(read_jsonl(tmp_path / "gsm8k.jsonl", Example)) == 16
    source = read_json(tmp_path / "gsm8k.source.json")
    assert source["folder"] == str(GSM8K) and set(source["sha256"]) == {"train.jsonl", "test.jsonl"}
    assert source["sha256"]["test.jsonl"] == hashlib.sha256((GSM8K / "test.jsonl").read_bytes()).hexdigest()


def test_a_model_that_is_not_as_the_study_states_is_refused_before_its_weights(monkeypatch, tmp_path):
    """The hub's client is not asked for them: without a network it would fail in another way."""
    monkeypatch.setattr(fetching, "commit", lambda kind, spec: "c" * 40)
    monkeypatch.setattr(fetching, "config_json", lambda spec: {"max_position_embeddings": 4096, "vocab_size": 7})
    spec = {"hub": "org/model", "config": {"max_position_embeddings": 8192}}
    with pytest.raises(StudyError, match=r"models\.m\.config\.max_position_embeddings: the study states 8192, .* 4096"):
        fetching.fetch(spec, tmp_path / "m")
    with pytest.raises(HubError, match="org/model"):
        fetching.fetch(spec | {"config": {"vocab_size": 7}}, tmp_path / "m")
