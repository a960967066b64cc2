"""How many rows a data set has, of what is made and of what a study says."""

import pytest
from studies import changed, load

from mcgrpo.files import write_json, write_jsonl
from mcgrpo.records import Example
from mcgrpo.study.paths import StudyFiles
from mcgrpo.study.rows import rows_of


@pytest.mark.parametrize(("taken_out", "rows"), [(None, {"train": 8, "test": 2}), ("splits", {"train": 3, "test": 1})])
def test_rows_are_counted_in_what_was_made_of_this_very_entry(taken_out, rows, tmp_path, monkeypatch):
    """Else in the folder that it is to be made of."""
    monkeypatch.chdir(tmp_path)
    for split, count in (("train", 3), ("test", 1)):
        write_jsonl(tmp_path / f"gsm8k/{split}.jsonl", [{"question": "1+1?", "answer": "2"}] * count)
    spec = {"task": "gsm8k", "folder": "gsm8k", "splits": {"train": {"rows": 8}, "test": {"rows": 2}}}
    files = StudyFiles("mini")
    made = [
        Example(f"{split}{n}", split, "1+1?", "2") for split, count in (("train", 8), ("test", 2)) for n in range(count)
    ]
    write_jsonl(files.data("sums"), made)
    write_json(files.data_source("sums"), {**spec, "sha256": {}})
    spec.pop(taken_out, None)
    assert rows_of(changed(load("mini"), {"datasets": {"sums": spec}}), "sums") == rows
