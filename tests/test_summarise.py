import math
import random

import pytest
from study_frames import cell_scores, curve_points, score, study, summary_of, write_scores

from mcgrpo.files import RecordError, write_csv
from mcgrpo.frames import read_frame
from mcgrpo.records import Cell, CurvePoint, Score
from mcgrpo.summarise import main, summarise

LAST_LINE = len(study()) + 2
"""Of a file with a header, the study and one row more."""


def cells(tmp_path, rows):
    return {
        (c.method, c.num_generations, c.variant, c.measure): c
        for c in summarise(read_frame(write_scores(tmp_path, rows), Score))
    }


def test_a_cell_has_its_mean_its_seeds_and_a_paired_difference(tmp_path):
    cell = cells(tmp_path, study())["mc-grpo", 2, "default", "avg@4"]
    assert (cell.seeds, cell.n, cell.baseline, cell.difference_seeds) == (3, 100, "grpo", 3)
    assert cell.mean == pytest.approx(0.45)
    # The noise that seeds share is gone from the difference, but not from the mean.
    assert cell.difference == pytest.approx(0.05)
    assert cell.difference_high - cell.difference == pytest.approx(4.302653 * 0.001 / math.sqrt(3), rel=1e-5)
    assert cell.high - cell.mean > 10 * (cell.difference_high - cell.difference)
    assert cell.published is None


def test_the_control_is_paired_with_grpo_and_a_baseline_with_none(tmp_path):
    found = cells(tmp_path, study())
    assert found["grpo-plus1", 2, "default", "greedy"].baseline == "grpo"
    assert found["grpo", 2, "default", "greedy"].baseline is None
    assert found["none", 0, "default", "greedy"].baseline is None
    assert found["none", 0, "default", "greedy"].low is None


def test_pairing_keeps_to_one_variant_and_budget(tmp_path):
    rows = cell_scores("grpo", 2, 0.1) + cell_scores("grpo", 4, 0.2) + cell_scores("grpo", 2, 0.3, variant="format")
    rows += cell_scores("mc-grpo", 2, 0.5, variant="format") + cell_scores("mc-grpo", 8, 0.5)
    found = cells(tmp_path, rows)
    assert found["mc-grpo", 2, "format", "greedy"].difference == pytest.approx(0.2)
    assert found["mc-grpo", 8, "default", "greedy"].difference is None
    assert found["mc-grpo", 8, "default", "greedy"].difference_seeds == 0


def test_the_order_of_rows_does_not_matter(tmp_path):
    rows = study()
    first = summary_of(tmp_path, rows)
    random.Random(3).shuffle(rows)
    assert summary_of(tmp_path, rows).equals(first)
    assert first[first.measure == "greedy"].method.tolist() == ["none", "grpo", "mc-grpo", "grpo-plus1", "grpo"]


def test_the_command_writes_what_read_frame_reads(tmp_path):
    scores, output = write_scores(tmp_path, study()), tmp_path / "new" / "summary.csv"
    main(["--scores", str(scores), "--output", str(output)])
    row = read_frame(output, Cell).query("method == 'mc-grpo' and measure == 'greedy'").iloc[0]
    assert (row.seeds, row.difference) == (3, pytest.approx(-0.06))


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (score("grpo", 2, 0, 0.5), r"method grpo: seed 0 is scored twice"),
        (score("grpo", 2, 9, 0.5, n=99), r"measure greedy.*method grpo: seeds differ in n \(.*99 at seed 9\)"),
        (score("gepo", 2, 0, 0.5), "unknown method 'gepo'"),
        (score("grpo", 2, 9, math.nan), rf"scores.csv:{LAST_LINE}: value should be a finite number, not 'nan'"),
        (score("grpo", 2, 9, None), rf"scores.csv:{LAST_LINE}: value is empty"),
        (score("grpo", 2, 9, "high"), rf"scores.csv:{LAST_LINE}: value should be float, not 'high'"),
        (
            score("grpo", 2, 9, 0.5, role="inn"),
            rf"scores.csv:{LAST_LINE}: role should be one of in, out, train, not",
        ),
    ],
)
def test_bad_scores_stop_the_command_naming_the_culprit(tmp_path, extra, message):
    scores = write_scores(tmp_path, [*study(), extra])
    with pytest.raises(SystemExit, match=message):
        main(["--scores", str(scores), "--output", str(tmp_path / "summary.csv")])
    assert not (tmp_path / "summary.csv").exists()


def test_nan_in_a_frame_names_its_cell(tmp_path):
    scores = read_frame(write_scores(tmp_path, study()), Score)
    scores.loc[(scores.method == "mc-grpo") & (scores.seed == 1), "value"] = math.nan
    with pytest.raises(ValueError, match=r"setting toy_a.*method mc-grpo: value 1 is nan"):
        summarise(scores)


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


def test_optional_fields_may_be_empty(tmp_path):
    write_csv(tmp_path / "curves.csv", CurvePoint, curve_points(steps=1))
    frame = read_frame(tmp_path / "curves.csv", CurvePoint)
    assert frame.loss.isna().all()
    assert frame.reward.dtype == "float64"
