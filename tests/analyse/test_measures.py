"""Measures by hand, and pass@k against the enumeration of every draw."""

import re
from dataclasses import replace
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.analyse.measures import MEASURE_NAMES, by_decoding, measures, pass_at, problems_hash
from mcgrpo.files import RecordError
from mcgrpo.records import Grade


def problem(*completions, decoding="sampled", id="a"):
    """Grades of one problem from (verdict, extracted) pairs, or verdicts alone."""
    pairs = [each if isinstance(each, tuple) else (each, None) for each in completions]
    return [Grade(id, sample, extracted, verdict, decoding) for sample, (verdict, extracted) in enumerate(pairs)]


FILE = [
    *problem("correct", decoding="greedy", id="a"),
    *problem("equivalent", decoding="greedy", id="b"),
    *problem("wrong", decoding="greedy", id="c"),
    *problem("timeout", decoding="greedy", id="d"),
    *problem("correct", "wrong", "wrong", "wrong", id="a"),
    *problem("equivalent", "equivalent", "correct", "error", id="b"),
    *problem("unparseable", "error", "wrong", "wrong", id="c"),
    *problem("correct", "correct", "correct", "correct", id="d"),
]


def test_by_hand():
    found = {measure.measure: measure for measure in measures(by_decoding(FILE, "file"))}
    assert {name: fmean(measure.values) for name, measure in found.items()} == pytest.approx(
        {
            "greedy": 2 / 4,
            "avg@4": (1 + 3 + 0 + 4) / 16,
            "pass@2": (1 / 2 + 1 + 0 + 1) / 4,  # of a: 1 - C(3,2)/C(4,2); of b: 1 - 0/6
            "pass@4": 3 / 4,
            "rate-unparseable": 1 / 20,
            "rate-timeout": 1 / 20,
            "rate-error": 2 / 20,
        }
    )
    assert {len(measure.values) for measure in found.values()} == {4}
    assert found["rate-error"].values == [0, 1 / 5, 1 / 5, 0]
    assert {measure.problems for measure in found.values()} == {problems_hash("abcd")} != {problems_hash("abdc")}


def ended(*reasons, decoding="sampled", id="a"):
    """Grades of one problem whose completions ended so."""
    grades = problem(*["wrong"] * len(reasons), decoding=decoding, id=id)
    return [replace(grade, finish_reason=reason) for grade, reason in zip(grades, reasons, strict=True)]


def test_the_share_that_was_cut_off_is_of_each_decoding():
    rows = ended("length", decoding="greedy") + ended("stop", decoding="greedy", id="b")
    rows += ended("length", "stop", "length") + ended("stop", "stop", "stop", id="b")
    found = {measure.measure: measure.values for measure in measures(by_decoding(rows, "file"))}
    assert found["rate-cut-greedy"] == [1, 0] and found["rate-cut-sampled"] == [2 / 3, 0]
    assert all(re.fullmatch(MEASURE_NAMES, name) for name in found)


def test_where_it_is_not_known_how_completions_ended_there_is_no_such_share():
    found = [measure.measure for measure in measures(by_decoding(ended("length", ""), "file"))]
    assert not any("cut" in name for name in found)


@given(st.lists(st.sampled_from(["correct", "equivalent", "wrong", "error"]), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_all_draws_with_a_right_one(verdicts, data):
    k = data.draw(st.integers(1, len(verdicts)))
    draws = list(combinations([verdict in ("correct", "equivalent") for verdict in verdicts], k))
    assert pass_at(k, verdicts) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_the_release_counts_any_of_its_samples():
    released = [replace(grade, verdict="wrong", verdict_released=grade.verdict) for grade in FILE]
    assert [(measure.measure, measure.values) for measure in measures(by_decoding(released, "file"), "released")] == [
        ("released-greedy", [1, 1, 0, 0]),
        ("released-any@4", [1, 1, 0, 1]),
    ]


def test_the_number_of_samples_decides_what_is_measured():
    def names(n):
        return [measure.measure for measure in measures(by_decoding(problem(*["wrong"] * n), "file"))][1:-3]

    assert names(1) == []
    assert names(2) == ["pass@2"]
    assert names(3) == ["pass@2", "pass@3"]
    assert names(8) == ["pass@2", "pass@4", "pass@8"]


@pytest.mark.parametrize(
    ("grades", "message"),
    [
        (problem("wrong") + problem("wrong", "correct", id="b"), "problems have 1 to 2 sampled samples each"),
        (problem("wrong", "correct")[:1] * 2, "a sampled sample of 'a' stands twice"),
        (problem("wrong", decoding="greedy") + problem("wrong", id="b"), "greedy and sampled .* different problems"),
        ([], "no grades"),
    ],
)
def test_grades_that_are_not_of_one_evaluation_are_named(grades, message):
    with pytest.raises(RecordError, match=rf"g\.jsonl: {message}"):
        by_decoding(grades, "g.jsonl")
