"""What a stage wrote and somebody changed is refused by the stage that reads it, though size and time are as before."""

import json
import os
from functools import partial

import pytest
from answers import plan_of

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.measures import read_grades
from mcgrpo.analyse.records import Cell, CellSignal, Contrast, CurvePoint, SignalPoint
from mcgrpo.analyse.scored import read_scores, write_scores
from mcgrpo.files import RecordError
from mcgrpo.grade.completions import main as grade
from mcgrpo.study.planned import read_plan, write_plan
from mcgrpo.sums import damage, seal, sha256, write_table


def change(path, old, new):
    """Replace text by other text of the same length; the file keeps its times."""
    assert len(old) == len(new) and old in path.read_text()
    times = path.stat()
    path.write_text(path.read_text().replace(old, new, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_grades_are_sealed_by_their_stage_and_completions_checked(tmp_path):
    completions, graded = tmp_path / "completions.jsonl", tmp_path / "grades.jsonl"
    row = {"id": "a", "sample": 0, "completion": "<answer>7</answer>", "answer": "7"}
    completions.write_text(json.dumps(row) + "\n")
    seal(completions)
    arguments = ["--task", "gsm8k", "--input", str(completions), "--output", str(graded)]
    grade(arguments)
    change(graded, '"a"', '"b"')
    with pytest.raises(RecordError, match=r"grades\.jsonl has changed since it was written .* remove .*grades\.jsonl"):
        read_grades(graded)
    change(completions, ">7<", ">8<")
    with pytest.raises(SystemExit, match=r"completions\.jsonl has changed since it was written"):
        grade(arguments)


MADE = [
    ("scores.jsonl", lambda path: write_scores(path, []), read_scores),
    ("plan.json", lambda path: write_plan(path, plan_of(["toy"])), read_plan),
    *(
        (name, partial(write_table, kind=kind, rows=[]), partial(read_frame, kind=kind))
        for name, kind in {
            "curves.csv": CurvePoint, "summary.csv": Cell, "comparisons.csv": Contrast,
            "signals.csv": CellSignal, "signal_curves.csv": SignalPoint,
        }.items()
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "write", "read"), MADE, ids=[name for name, *_ in MADE])
def test_what_a_stage_made_is_refused_once_it_has_changed_or_lost_its_seal(tmp_path, name, write, read):
    path = tmp_path / name
    write(path)
    read(path)
    path.write_text(path.read_text() + " ")
    with pytest.raises(RecordError, match=f"{name} has changed since it was written"):
        read(path)
    write(path)
    path.with_name(f"{name}.sha256").unlink()
    with pytest.raises(RecordError, match=rf"{name}: its sum, {name}\.sha256, is not beside it: remove"):
        read(path)
    path.with_name(f"{name}.sha256").touch()
    with pytest.raises(RecordError, match=r"\.sha256 is empty"):
        read(path)


@pytest.mark.parametrize("name", ["../outside", "below/../../outside", "{folder}/outside"])
def test_a_list_of_sums_names_no_file_outside_its_folder(name, tmp_path):
    (folder := tmp_path / "folder").mkdir()
    (outside := tmp_path / "outside").write_text("secret")
    name = name.format(folder=tmp_path)
    assert "is not below" in damage(folder, {name: sha256(outside)})
