import csv
import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import RUN

from mcgrpo import files
from mcgrpo.analyse.records import CurvePoint, Score
from mcgrpo.files import RecordError
from mcgrpo.records import Completion, Example, Grade, Run

ANY_TEXT = st.text(st.characters())  # lone surrogates, NUL and newlines among them
TRICKY = "\ud800 \x00 \n \r\n \u2028 \x85 \ufeff é"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), max_size=3))
def test_jsonl_brings_any_text_back(tmp_path, texts):
    rows = [Completion(f"{i}", 0, completion, answer) for i, (completion, answer) in enumerate(texts)]
    files.write_jsonl(tmp_path / "rows.jsonl", rows)
    assert files.read_jsonl(tmp_path / "rows.jsonl", Completion) == rows


def test_one_record_stands_on_one_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    files.write_jsonl(path, [Example("a", "test", TRICKY, "1"), {"id": "b"}])
    assert len(path.read_bytes().splitlines()) == 2


def test_json_brings_any_text_back(tmp_path):
    files.write_json(tmp_path / "run.json", {"error": TRICKY})
    assert files.read_json(tmp_path / "run.json") == {"error": TRICKY}


def test_csv_holds_the_fields_in_order_and_none_as_nothing(tmp_path):
    nothing = [None] * (len(CurvePoint.__dataclass_fields__) - 8)
    point = CurvePoint("a,b", "grpo", 2, 'say "x"\ny', 0, 1, 16, 0.1, *nothing)
    files.write_csv(tmp_path / "curves.csv", CurvePoint, [point])
    with (tmp_path / "curves.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == list(CurvePoint.__dataclass_fields__)
    assert (row["setting"], row["variant"], float(row["accuracy"])) == ("a,b", 'say "x"\ny', 0.1)
    assert {row["loss"], row["seconds_update"]} == {""}


GRADE = {"id": "a", "sample": 0, "extracted": None, "verdict": "correct"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "rows.jsonl:2: not valid JSON .* at column 2"),
        ('["a"]', "rows.jsonl:2: a JSON object is expected, not list"),
        (json.dumps({"id": "a", "sample": 0, "extracted": "1"}), "rows.jsonl:2: field 'verdict' is missing"),
        (json.dumps(GRADE | {"verdcit": "x"}), "rows.jsonl:2: unknown field 'verdcit' for Grade .*verdict"),
        (json.dumps(GRADE | {"verdict": "right"}), "rows.jsonl:2: .*one of correct, .*, error, not 'right'"),
        (json.dumps(GRADE | {"sample": True}), "rows.jsonl:2: field 'sample' should be int, not True"),
        (json.dumps(GRADE | {"extracted": 3}), r"rows.jsonl:2: field 'extracted' should be str or null, not 3"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    (tmp_path / "rows.jsonl").write_text(json.dumps(GRADE) + "\n" + line + "\n")
    with pytest.raises(RecordError, match=message):
        files.read_jsonl(tmp_path / "rows.jsonl", Grade)


def test_bytes_that_are_no_text_are_named(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(b'{"a": 1}\n{"a": "\xff"}\n')
    with pytest.raises(RecordError, match=r"rows.jsonl:2: not UTF-8 text"):
        list(files.iter_json_lines(tmp_path / "rows.jsonl"))


def test_values_of_a_mapping_are_checked():
    with pytest.raises(RecordError, match="plan: field 'rewards'"):
        files.as_record(Run, asdict(RUN) | {"rewards": {"accuracy": "1"}}, "plan")


def test_a_missing_file_is_named(tmp_path):
    for read in (lambda path: files.read_jsonl(path, Grade), files.read_json):
        with pytest.raises(RecordError, match=r"none\.json: no such file"):
            read(tmp_path / "none.json")


def broken_rows():
    yield {"id": "a"}
    raise RuntimeError("the model died")


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "rows.jsonl"
    files.write_jsonl(path, [{"id": "old"}])
    with pytest.raises(RuntimeError, match="the model died"):
        files.write_jsonl(path, broken_rows())
    with pytest.raises(AttributeError):
        files.write_csv(path, Score, [object()])
    assert path.read_text() == '{"id": "old"}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_files_have_the_permissions_of_any_new_file(tmp_path):
    files.write_json(tmp_path / "a" / "b.json", {})
    (tmp_path / "plain").touch()
    assert (tmp_path / "a" / "b.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


WRITER = """
import sys
from mcgrpo.files import write_jsonl
for turn in range(60):
    write_jsonl(sys.argv[1], [{"writer": sys.argv[2], "turn": turn, "row": row} for row in range(200)])
"""


def test_concurrent_writers_never_leave_half_a_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    files.write_jsonl(path, [{"writer": "0", "turn": 0, "row": row} for row in range(200)])
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(number)], env=os.environ) for number in range(2)]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        rows = [row for _, row in files.iter_json_lines(path)]
        assert [row["row"] for row in rows] == list(range(200))
        assert len({(row["writer"], row["turn"]) for row in rows}) == 1
        seen.add((rows[0]["writer"], rows[0]["turn"]))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(seen) > 3
    assert list(tmp_path.iterdir()) == [path]
