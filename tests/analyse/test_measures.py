"""Measures by hand, and pass@k against the enumeration of every draw."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcgrpo.analyse.measures import by_decoding, majority, measures, pass_at, problems_hash
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
            "exact-greedy": 1 / 4,
            "avg@4": (1 + 3 + 0 + 4) / 16,
            "exact-avg@4": (1 + 1 + 0 + 4) / 16,
            "pass@2": (1 / 2 + 1 + 0 + 1) / 4,  # of a: 1 - C(3,2)/C(4,2); of b: 1 - 0/6
            "pass@4": 3 / 4,
            "maj@4": (1 + 1 + 0 + 1) / 4,  # a: one right vote, and no wrong one gave an answer
            "rate-unparseable": 1 / 20,
            "rate-timeout": 1 / 20,
            "rate-error": 2 / 20,
        }
    )
    assert {len(measure.values) for measure in found.values()} == {4}
    assert found["rate-error"].values == [0, 1 / 5, 1 / 5, 0]
    assert {measure.problems for measure in found.values()} == {problems_hash("abcd")} != {problems_hash("abdc")}


@pytest.mark.parametrize(
    ("completions", "expected"),
    [
        ([("wrong", "7"), ("wrong", "7"), ("correct", "6")], 0.0),
        ([("wrong", "7"), ("equivalent", "6.0"), ("correct", "6")], 1.0),  # right answers are one answer
        ([("wrong", "7"), ("wrong", "8"), ("correct", "6")], 1 / 3),  # a tie of three
        ([("wrong", "7"), ("correct", "6"), ("unparseable", None)], 1 / 2),
        ([("unparseable", None), ("timeout", None), ("error", None)], 0.0),
        ([("wrong", ""), ("unparseable", None), ("correct", "6")], 1.0),  # nothing is no answer to vote for
    ],
)
def test_majority(completions, expected):
    assert majority(problem(*completions)) == pytest.approx(expected)


@given(st.lists(st.sampled_from(["correct", "equivalent", "wrong", "error"]), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_all_draws_with_a_right_one(verdicts, data):
    k = data.draw(st.integers(1, len(verdicts)))
    draws = list(combinations([verdict in ("correct", "equivalent") for verdict in verdicts], k))
    assert pass_at(k, problem(*verdicts)) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_the_release_counts_any_of_its_samples():
    assert [(measure.measure, measure.values) for measure in measures(by_decoding(FILE, "file"), "released")] == [
        ("released-greedy", [1, 1, 0, 0]),
        ("released-any@4", [1, 1, 0, 1]),
    ]


def test_the_number_of_samples_decides_what_is_measured():
    def names(n):
        return [measure.measure for measure in measures(by_decoding(problem(*["wrong"] * n), "file"))][2:-3]

    assert names(1) == []
    assert names(2) == ["pass@2"]
    assert names(3) == ["pass@2", "pass@3", "maj@3"]
    assert names(8) == ["pass@2", "pass@4", "pass@8", "maj@8"]


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
