"""What a stage wrote and somebody changed is refused by the stage that reads it, though size and time are as before."""

import json
import os

import pytest
from collected import grades

from mcgrpo.analyse.frames import read_records
from mcgrpo.analyse.measures import read_grades
from mcgrpo.analyse.records import CurvePoint
from mcgrpo.analyse.scored import read_scores
from mcgrpo.files import RecordError, write_csv, write_jsonl
from mcgrpo.grade.completions import main as grade
from mcgrpo.sums import seal


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


def test_scores_and_curves_are_checked(tmp_path):
    scores, curves = tmp_path / "scores.jsonl", tmp_path / "curves.csv"
    write_jsonl(scores, grades()[:1])
    write_csv(curves, CurvePoint, [])
    for path, read in ((scores, lambda: read_scores(scores)), (curves, lambda: read_records(curves, CurvePoint))):
        seal(path)
        change(path, "s", "z")
        with pytest.raises(RecordError, match=f"{path.name} has changed since it was written"):
            read()
