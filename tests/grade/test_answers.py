import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_time import is_linear

from mcgrpo.grade.rewards import is_boxed
from mcgrpo.grade.task import MAX_EXTRACTED
from mcgrpo.grade.tasks import TASKS
from mcgrpo.grade.tasks.gsm8k import to_decimal


@pytest.mark.parametrize(
    ("completion", "answer", "verdict", "extracted"),
    [
        ("<answer>72</answer>", "72", "correct", "72"),
        ("<answer> 72\n</answer>", "Natalia sold 48+24 = 72.\n#### 72", "correct", "72"),
        ("<answer>1</answer> no: <answer>72</answer> done", "72", "correct", "72"),
        ("<answer>72</answer><answer>1</answer>", "72", "wrong", "1"),
        ("<answer>72.0</answer>", "72", "equivalent", "72.0"),
        ("<answer>$72</answer>", "72", "equivalent", "$72"),
        ("<answer>72.</answer>", "72", "equivalent", "72."),
        ("<answer>72%</answer>", "72", "equivalent", "72%"),
        ("<answer>072</answer>", "72", "equivalent", "072"),
        ("<answer>1000</answer>", "#### 1,000", "correct", "1000"),
        ("<answer>1,000</answer>", "#### 1,000", "correct", "1,000"),
        ("<answer>1,000</answer>", "1000", "equivalent", "1,000"),
        ("<answer>10,00</answer>", "1000", "wrong", "10,00"),
        ("<answer>-5</answer>", "5", "wrong", "-5"),
        ("<answer>-$5</answer>", "-5", "equivalent", "-$5"),
        ("<answer>-0</answer>", "0", "equivalent", "-0"),
        ("<answer>-3</answer>", "-3.00", "correct", "-3"),
        ("<answer>.5</answer>", "0.5", "equivalent", ".5"),
        ("<answer>6 cards</answer>", "6", "wrong", "6 cards"),
        ("<answer>3 + 3</answer>", "6", "wrong", "3 + 3"),
        ("<answer></answer>", "6", "wrong", ""),
        ("<answer>a<b\ud800\0</answer>", "6", "wrong", "a<b??"),
        ("<answer>١</answer>", "1", "wrong", "١"),
        ("the answer is 72", "72", "unparseable", None),
        ("<answer>72", "72", "unparseable", None),
        ("<answer>7</answer><answer>72", "72", "unparseable", None),
        ("", "72", "unparseable", None),
    ],
)
def test_the_papers_gsm8k(completion, answer, verdict, extracted):
    judgement = TASKS["gsm8k"].judge_one(completion, answer)
    assert (judgement.verdict, judgement.extracted) == (verdict, extracted)
    assert judgement.gold_parsable


@pytest.mark.parametrize(
    ("completion", "answer", "verdict", "extracted"),
    [
        ("so 3 apples, 72 in all", "72", "correct", "72"),
        ("<answer>72</answer> in 5 steps", "72", "wrong", "5"),
        ("it is -5", "5", "correct", "5"),
        ("it is 5", "#### -5", "correct", "5"),
        ("$1,450,000.00 in total", "#### 1,450,000", "equivalent", "1450000.00"),
        ("no number", "72", "unparseable", None),
    ],
)
def test_the_releases_looser_gsm8k(completion, answer, verdict, extracted):
    judgement = TASKS["gsm8k"].judge_one(completion, answer, "released")
    assert (judgement.verdict, judgement.extracted) == (verdict, extracted)


@pytest.mark.parametrize(("answer", "protocol"), [("#### ", "paper"), ("", "paper"), ("none", "released")])
def test_a_gold_that_says_nothing_is_told_apart_from_a_wrong_answer(answer, protocol):
    judgement = TASKS["gsm8k"].judge_one("<answer>72</answer>", answer, protocol)
    assert judgement.verdict == "unparseable"
    assert not judgement.gold_parsable


def test_numbers_compare_exactly_where_floats_would_not():
    big = "9" * 30
    assert to_decimal(big) != to_decimal(big[:-1] + "8")
    assert to_decimal("0.1") == to_decimal(".10")
    assert to_decimal("1e5") is to_decimal("+-5") is to_decimal("$") is to_decimal(".") is to_decimal("") is None
    assert to_decimal("5.") == to_decimal("5") == to_decimal("+5.00")


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("$\\boxed{5}$", True),
        ("\\boxed{} and \\boxed{\\frac{1}{2}}", True),
        ("\\boxed{", False),
        ("\\boxed{}", False),
        ("boxed{5}", False),
        ("\\boxed 5", False),
    ],
)
def test_boxes(completion, expected):
    assert is_boxed(completion) is expected


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("<answer>", "9", "</answer>"),
        ("<answer>1", ",000", "</answer>"),
        ("<answer>", "0.", "</answer>"),
        ("", "<answer>", ""),
        ("", "</answer><answer>", ""),
        ("", "1.1", ""),
        ("", " ", ""),
        ("", "\\boxed{", ""),
        ("", "\\boxed{}", ""),
    ],
)
def test_megabytes_take_linear_time_and_are_cut(before, piece, after):
    def read(text):
        completion = before + text + after
        for protocol in ("paper", "released"):
            judgement = TASKS["gsm8k"].judge_one(completion, "72", protocol)
            assert judgement.verdict in ("wrong", "unparseable")
            assert len(judgement.extracted or "") <= MAX_EXTRACTED
        assert not is_boxed(completion)

    assert is_linear(read, piece, 3_000_000)


@settings(max_examples=300)
@given(st.text(st.characters(codec=None), max_size=200), st.sampled_from(["72", "-1,000.50", "#### 3"]))
def test_any_text_gets_a_verdict_that_a_file_can_hold(text, answer):
    for completion in (text, f"<answer>{text}</answer>"):
        for protocol in ("paper", "released"):
            judgement = TASKS["gsm8k"].judge_one(completion, answer, protocol)
            assert judgement.verdict in ("correct", "equivalent", "wrong", "unparseable")
            assert len((judgement.extracted or "").encode("utf-8")) <= 4 * MAX_EXTRACTED


@pytest.mark.parametrize("task", TASKS)
def test_a_warm_start_teaches_a_solution_as_the_grader_reads_it(task):
    taught = TASKS[task].demonstration
    assert taught("5+1=6", "6") == "<think>5+1=6</think>\n<answer>6</answer>"
    done = "<reasoning>5+1=6</reasoning><answer>6</answer>"
    assert taught(done, "6") == done  # it has the answer in tags already
