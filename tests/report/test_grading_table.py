"""The table of grading: what each protocol makes of the same completions, and how many were cut off."""

import pytest
from cells import cell, frame

from mcgrpo.report.tables import grading

MEASURES = {
    "greedy": 0.5,
    "avg@4": 0.4,
    "released-greedy": 0.53,
    "robust-greedy": 0.52,
    "robust-avg@4": 0.3925,
    "rate-cut-greedy": 0.25,
    "rate-cut-sampled": 0.125,
    "rate-unparseable": 0.031,
}


def made(tmp_path, **measures):
    rows = [cell("mc-grpo", 2, value, measure=name) for name, value in measures.items()]
    found = grading.table(frame(tmp_path, rows))
    return found and found.frame.to_dict("records")


def test_a_line_of_sampled_completions(tmp_path):
    (line,) = made(tmp_path, **MEASURES)
    assert list(line)[5:] == ["Paper (%)", "Robust", "Released, greedy", "Cut off (%)", "Unparseable (%)"]
    assert list(line.values())[3:] == ["2", "MC-GRPO", "40.0", "−0.75", "+3.00", "12.5", "3.1"]


def test_a_line_of_greedy_completions(tmp_path):
    greedy = {name: value for name, value in MEASURES.items() if "avg" not in name}
    (line,) = made(tmp_path, **greedy)
    assert list(line.values())[5:] == ["50.0", "+2.00", "+3.00", "25.0", "3.1"]


def test_what_a_study_does_not_grade_is_no_column(tmp_path):
    (line,) = made(tmp_path, **{"avg@4": 0.4, "rate-cut-sampled": 0.125})
    assert list(line)[5:] == ["Paper (%)", "Cut off (%)"]


@pytest.mark.parametrize("measures", [{}, {"avg@4": 0.4, "rate-unparseable": 0.1}, {"rate-cut-greedy": 0.1}])
def test_without_a_number_beside_the_papers_there_is_no_table(tmp_path, measures):
    assert made(tmp_path, **measures) is None
