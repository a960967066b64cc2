"""What a run's record says of the data that it was trained on, and of the model that it started from."""

import hashlib
import json

import pytest

from mcgrpo.files import RecordError
from mcgrpo.records import TrainingData
from mcgrpo.train.provenance import data_set, initial_model

ROWS = [{"id": str(number), "split": split, "question": "?"} for number, split in enumerate(["train", "test", "train"])]


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_rows_to_train_on_are_counted_however_their_json_is_spaced(tmp_path, separators):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row, separators=separators) + "\n" for row in ROWS))
    told = data_set(path)
    assert told == TrainingData(str(path), hashlib.sha256(path.read_bytes()).hexdigest(), 2)


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"split": "train"}\n{"split": "tr\n')
    with pytest.raises(RecordError, match=r"data\.jsonl:2"):
        data_set(tmp_path / "data.jsonl")


def test_of_an_initial_model_every_byte_counts_and_its_source_is_told(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"0123")
    plain = initial_model(tmp_path)
    assert plain.path == str(tmp_path) and plain.source == {}
    (tmp_path / "model.safetensors").write_bytes(b"0124")
    changed = initial_model(tmp_path)
    (tmp_path / "source.json").write_text('{"hub": "org/model", "commit": "abc"}')
    told = initial_model(tmp_path)
    assert told.source == {"hub": "org/model", "commit": "abc"}
    assert len({each.sha256 for each in (plain, changed, told)}) == 3
