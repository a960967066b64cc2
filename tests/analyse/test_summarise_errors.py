"""Scores, values, plans and tables that are wrong stop the summary, which names the culprit."""

import dataclasses
import math

import pytest
from study_frames import (
    cell_scores,
    cells,
    command,
    plan_of,
    score,
    study,
    values_of,
    write_scores,
)

from mcgrpo.analyse.frames import read_frame
from mcgrpo.analyse.records import Score
from mcgrpo.analyse.summarise import summarise
from mcgrpo.files import RecordError

LAST_LINE = len(study()) + 2
"""Of a file with a header, the study and one row more."""


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (score("grpo", 2, 0, 0.5), r"method grpo: seed 0 is scored twice"),
        (score("grpo", 2, 9, 0.5, n=99), r"measure greedy.*method grpo: seeds differ in n \(.*99 at seed 9\)"),
        (score("gepo", 2, 0, 0.5), "unknown method 'gepo'"),
        (score("grpo", 2, 9, math.nan), rf"scores.csv:{LAST_LINE}: value should be a finite number, not 'nan'"),
        (score("grpo", 2, 9, None), rf"scores.csv:{LAST_LINE}: value is empty"),
        (score("grpo", 2, 9, "high"), rf"scores.csv:{LAST_LINE}: value should be float, not 'high'"),
    ],
)
def test_bad_scores_stop_the_command_naming_the_culprit(tmp_path, extra, message):
    rows = [*study(), extra]
    with pytest.raises(SystemExit, match=message):
        command(tmp_path, plan_of(rows), rows, values_of(study()))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (score("grpo", 2, 9, 0.5), "benchmark sums, measure greedy, num_generations 2, method grpo: seed 9 is not in"),
        (score("dapo", 2, 0, 0.5), "method dapo: seed 0 is not in the plan"),
        (score("grpo", 2, 0, 0.5, benchmark="chains"), "benchmark chains.*seed 0 is not in the plan"),
        (score("grpo", 2, 0, 0.5, role="out"), "role out, benchmark sums.*seed 0 is not in the plan"),
        (score("grpo", 2, 0, 0.5, role="flips"), "role flips.*seed 0 is not in the plan"),
        (score("none", 0, 0, 9.0, benchmark="train", role="train"), "role train.*method none: seed 0 is not in the"),
    ],
)
def test_what_is_not_planned_is_named(tmp_path, extra, message):
    with pytest.raises(ValueError, match=message):
        cells(tmp_path, [*study(), extra], plan_of(study()))


def changed(rows, place, changes):
    """One row is another."""
    return [*rows[:place], dataclasses.replace(rows[place], **changes), *rows[place + 1 :]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problems": "other"}, "method grpo: seed 0 is on other problems than seed 0 of .*method none"),
        ({"values": [0.3] * 99}, "method none: values of seed 0 have n=99, mean 0.3; their score n=100, value 0.3"),
        ({"values": [0.4] * 100}, "values of seed 0 have n=100, mean 0.4; their score n=100, value 0.3"),
        ({"values": [0.3] * 99 + [math.nan]}, "method none: values of seed 0 are not all finite"),
        ({"values": [0.3] * 99 + ["right"]}, "method none: values of seed 0 are not all numbers"),
        ({"seed": 7}, "method none: values of seed 7 without a score"),
        ({"method": "grpo", "num_generations": 2, "values": [0.48] * 100}, "method grpo: values of seed 0 stand twice"),
    ],
)
def test_values_that_are_not_the_scores_are_named(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        cells(tmp_path, study(), values=changed(values_of(study()), 0, changes))


def test_other_problems_at_one_seed_of_a_cell_are_named(tmp_path):
    rows = cell_scores("grpo", 2, 0.5) + cell_scores("mc-grpo", 2, 0.4)
    message = r"method mc-grpo: seed 1 is on other problems than seed 0 of .*method grpo"
    with pytest.raises(ValueError, match=message):
        cells(tmp_path, rows, values=changed(values_of(rows), 4, {"problems": "other"}))
    with pytest.raises(ValueError, match=r"method mc-grpo: seed 1 has no values on problems, but seed 0 of .*grpo has"):
        cells(tmp_path, rows, values=values_of(rows[:4] + rows[5:]))


def test_values_that_are_no_records_name_their_line(tmp_path):
    row = dataclasses.asdict(values_of(study())[0])
    del row["problems"]
    with pytest.raises(SystemExit, match=r"values.jsonl:1: field 'problems' is missing"):
        command(tmp_path, plan_of(study()), study(), [row])


def test_nan_in_a_frame_names_its_cell(tmp_path):
    scores = read_frame(write_scores(tmp_path, study()), Score)
    scores.loc[(scores.method == "mc-grpo") & (scores.seed == 1), "value"] = math.nan
    with pytest.raises(ValueError, match=r"setting toy_a.*method mc-grpo: the value of seed 1 is nan"):
        summarise(plan_of(study()), scores)


def test_a_plan_with_a_run_that_is_none_is_refused(tmp_path):
    plan = plan_of(study())
    del plan["runs"][0]["seed"]
    with pytest.raises(RecordError, match="plan: field 'seed' is missing"):
        cells(tmp_path, study(), plan)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a CSV table"),
        ("setting,method\n", "column 'num_generations' is missing or unknown; Score has"),
        ("{header},more\n", "column 'more' is missing"),
        ("{header}\na,grpo\n", "x.csv:2: 2 fields, not the header's 11"),
    ],
)
def test_other_tables_are_refused(tmp_path, content, message):
    header = ",".join(Score.__dataclass_fields__)
    (tmp_path / "x.csv").write_text(content.format(header=header))
    with pytest.raises(RecordError, match=message):
        read_frame(tmp_path / "x.csv", Score)
    with pytest.raises(RecordError, match="no such file"):
        read_frame(tmp_path / "absent.csv", Score)
