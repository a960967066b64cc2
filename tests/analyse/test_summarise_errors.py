"""Scores, plans and tables that are wrong stop the summary, which names the culprit."""

import dataclasses

import pytest
from study_frames import cell_scores, cells, command, plan_of, score, study, with_values

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import SignalPoint
from mcgrpo.files import RecordError, read_json, write_json
from mcgrpo.study.planned import read_plan, write_plan
from mcgrpo.sums import seal


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (score("grpo", 2, 9, 0.5, n=99), r"measure greedy.*method grpo: seed 9 is on other problems than seed 0 of"),
        (score("gepo", 2, 0, 0.5), "unknown method 'gepo'"),
        (score("grpo", 2, 9, None, values=[0.5]), r"scores\.jsonl:\d+: field 'value' should be float, not None"),
    ],
)
def test_bad_scores_stop_the_command_naming_the_culprit(tmp_path, extra, message):
    rows = [*study(), extra]
    with pytest.raises(SystemExit, match=message):
        command(tmp_path, plan_of(rows), rows)
    assert not (tmp_path / "summary.csv").exists()


@pytest.mark.parametrize("place", [0, 4])
def test_other_problems_are_named(tmp_path, place):
    """At one seed of a cell, and in a cell that is compared with others."""
    rows = with_values([score("none", 0, 0, 0.3), *cell_scores("grpo", 2, 0.5), *cell_scores("mc-grpo", 2, 0.4)])
    rows[place] = dataclasses.replace(rows[place], problems="other")
    first, second = ("grpo: seed 0", "seed 0 of .*none") if place == 0 else ("mc-grpo: seed 0", "seed 0 of .*none")
    with pytest.raises(ValueError, match=f"method {first} is on other problems than {second}"):
        cells(tmp_path, rows)


def test_a_plan_with_a_run_that_is_none_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    write_plan(path, plan_of(study()))
    content = read_json(path)
    del content["runs"][0]["seed"]
    write_json(path, content)
    seal(path)
    with pytest.raises(RecordError, match=r"plan\.json: runs 1: field 'seed' is missing"):
        read_plan(path)
    content["runs"] = content["runs"][1:]
    write_json(path, content)
    seal(path)
    with pytest.raises(RecordError, match="does not stand under both runs and evaluations"):
        read_plan(path)


ROW = "toy_a,a/none/G0/default/seed0,grpo,2,0.5,0.1,"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"x\.csv: not a table of SignalPoint"),
        ("setting,method\n", r"x\.csv: column 'source' is missing or unknown; SignalPoint has"),
        ("{header},more\n", "column 'more' is missing"),
        ("{header}\n" + ROW + "1,2\n", r"x\.csv: not a table of SignalPoint"),
        ("{header}\na,grpo\n", "Integer column has NA values"),
        ("{header}\n" + ROW, "column 'objective' has an empty field"),
        ("{header}\n" + ROW + "high", "could not convert string to float: 'high'"),
    ],
)
def test_other_tables_are_refused(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content.format(header=",".join(SignalPoint.__dataclass_fields__)))
    with pytest.raises(RecordError, match=message):
        read_frame(tmp_path / "x.csv", SignalPoint, sealed=False)
    with pytest.raises(RecordError, match="no such file"):
        read_frame(tmp_path / "absent.csv", SignalPoint)
