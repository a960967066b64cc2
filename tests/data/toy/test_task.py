import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcgrpo.data.toy import demonstrator, task
from mcgrpo.data.toy.demonstrator import demonstrate
from mcgrpo.data.toy.examples import examples

KIND = pytest.mark.parametrize("kind", task.KINDS)
STEPS = {"two-step": 2, "three-step": 3}


def recompute(solution):
    """The value of each `a?b=c`, worked out again, with what it claims."""
    found = re.findall(r"(\d+)([+*-])(\d+)=(\d+)", solution)
    arithmetic = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
    return [(int(left), arithmetic[op](int(left), int(right)), int(value)) for left, op, right, value in found]


def test_questions_read_as_told():
    read = task.Problem("Sam", "cards", "-+", ("sells", "gets"), (5, 4, 5)).question
    assert read == "Sam has 5 cards. Sam sells 4 and gets 5 more. How many cards?"
    read = task.Problem("Mia", "pens", "*+-", ("boxes", "finds", "loses"), (2, 3, 4, 1)).question
    assert read == "Mia has 2 boxes with 3 pens each. Mia finds 4 more and loses 1. How many pens?"


@KIND
def test_solutions_are_right_and_end_in_the_answer(kind):
    for example in examples(kind, "train", 400, 0):
        steps = recompute(example.solution)
        assert len(steps) == STEPS[kind]
        assert all(right == claimed for _, right, claimed in steps)
        assert [left for left, _, _ in steps[1:]] == [value for _, _, value in steps[:-1]]
        assert example.answer == str(steps[-1][-1])
        assert 0 <= int(example.answer) <= 99


@KIND
@settings(max_examples=15, deadline=None)
@given(seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)), count=st.integers(1, 1500))
def test_splits_share_no_question_whatever_the_seeds(kind, seeds, count):
    splits = [
        {example.question for example in examples(kind, split, count, seed)}
        for split, seed in zip(("test", "train", "warm"), (*seeds, 0), strict=True)
    ]
    assert all(len(questions) == count for questions in splits)
    assert len(set.union(*splits)) == 3 * count


@KIND
def test_examples_follow_from_the_seed_alone(kind):
    code = (
        f"from mcgrpo.data.toy.examples import examples; print([e.question for e in examples({kind!r}, 'test', 5, 3)])"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = [example.question for example in examples(kind, "test", 5, 3)]
    assert other.strip() == str(here)
    assert here != [example.question for example in examples(kind, "test", 5, 4)]


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("four-step", "test", 1, 0), "four-step"),
        (("two-step", "dev", 1, 0), "dev"),
        (("two-step", "test", -1, 0), "-1"),
        (("two-step", "test", task.space("two-step", "test") + 1, 0), str(task.space("two-step", "test"))),
    ],
)
def test_bad_requests_name_the_culprit(arguments, culprit):
    with pytest.raises(ValueError, match=re.escape(culprit)):
        examples(*arguments)


@pytest.mark.parametrize(
    ("bare", "boxed", "slips", "expected"),
    [
        (1, 0, (0, 0), "<reasoning>5-4=1;1+5=6</reasoning><answer>6</answer>"),
        (-1, 1, (1, 1), r"<reasoning>5+4=9;9+5=14;\boxed{14}</reasoning><answer>14 cards</answer>"),
    ],
)
def test_demonstrations(bare, boxed, slips, expected, monkeypatch):
    monkeypatch.setattr(demonstrator, "BARE", bare)
    monkeypatch.setattr(demonstrator, "BOXED", boxed)
    problem = task.Problem("Sam", "cards", "-+", ("sells", "gets"), (5, 4, 5))
    assert demonstrate(problem, random.Random(0), slips) == expected


def test_warm_solutions_are_demonstrations_only_with_slips():
    plain, shown, test = (
        examples("two-step", split, 50, 0, slips)
        for split, slips in (("warm", None), ("warm", (0.0, 0.8)), ("test", (0.0, 0.8)))
    )
    assert [each.question for each in plain] == [each.question for each in shown]
    assert not any("<answer>" in each.solution for each in (*plain, *test))
    assert all(each.solution.startswith("<reasoning>") for each in shown)
    assert shown == examples("two-step", "warm", 80, 0, (0.0, 0.8))[:50]
    with pytest.raises(ValueError, match=r"toy.slips \[0.5, 0.2\]"):
        examples("two-step", "warm", 1, 0, (0.5, 0.2))
