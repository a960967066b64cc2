r"""Which `\boxed{...}` is the answer, under the protocol `robust`."""

import pytest
from linear_time import is_linear

from mcgrpo.grade.boxes import closed, parts, with_last_boxes
from mcgrpo.grade.rewards import judge

SEVERAL = [
    # gold, completion, under paper, under robust
    ("10080", "Per day \\boxed{1,440}, per week \\boxed{10,080}.", "wrong", "correct"),
    ("10,080", "Per day \\boxed{1,440}, per week \\boxed{10,080}.", "wrong", "correct"),
    ("10{,}080", "Per day \\boxed{1440}, per week \\boxed{10080}.", "wrong", "correct"),
    ("9", "First \\boxed{3}, but squared this is \\boxed{9}.", "wrong", "correct"),
    ("3", "First \\boxed{3}, but squared this is \\boxed{9}.", "wrong", "wrong"),
    ("1,440", "Per day \\boxed{1,440}, per week \\boxed{10,080}.", "wrong", "wrong"),
    ("(3,-2)", "First \\boxed{(1,1)}; the answer is \\boxed{(3,-2)}.", "wrong", "correct"),
    ("(1,1)", "First \\boxed{(1,1)}; the answer is \\boxed{(3,-2)}.", "wrong", "wrong"),
    ("(3,-2)", "$x=\\boxed{3}$ and $y=\\boxed{-2}$", "correct", "correct"),
    ("[0,4)", "First \\boxed{(0,4)}, no: \\boxed{[0,4)}", "wrong", "correct"),
    ("(0,4)", "First \\boxed{(0,4)}, no: \\boxed{[0,4)}", "wrong", "wrong"),
    ("\\text{odd}", "Not \\boxed{\\text{even}} but \\boxed{\\text{odd}}", "wrong", "correct"),
    ("\\text{even}", "Not \\boxed{\\text{even}} but \\boxed{\\text{odd}}", "wrong", "wrong"),
    ("12\\text{ cm}", "From \\boxed{6} we get \\boxed{12}", "wrong", "correct"),
    ("6\\text{ cm}", "From \\boxed{6}, \\boxed{12}", "wrong", "wrong"),
    ("1, 2", "They are $\\boxed{1}$ and $\\boxed{2}$.", "correct", "correct"),
    ("1, 2", "First \\boxed{7}. So \\boxed{1} and \\boxed{2}", "wrong", "correct"),
    ("1, 2", "\\boxed{7}, no: the roots are \\boxed{1, 2}", "wrong", "correct"),
    ("1, 2", "\\boxed{3}, \\boxed{1} and \\boxed{2}", "wrong", "wrong"),
    ("1, 2", "\\boxed{1}, \\boxed{2} and \\boxed{3}", "wrong", "wrong"),
    ("1 \\text{ and } 2", "From \\boxed{4}: \\boxed{1 \\text{ and } 2}", "wrong", "correct"),
    ("1 \\pm \\sqrt{2}", "So \\boxed{1+\\sqrt{2}} and \\boxed{1-\\sqrt{2}}", "correct", "correct"),
    ("\\{1,2\\}", "The roots are \\boxed{1} and \\boxed{2}", "correct", "correct"),
    ("\\{1,2\\}", "Not \\boxed{\\{1,3\\}}, but \\boxed{\\{1,2\\}}", "wrong", "correct"),
    ("12", "So \\boxed{12}. Check: \\boxed{1", "correct", "correct"),
    ("12", "So \\boxed{11}. Check: \\boxed{12", "wrong", "wrong"),
    ("12", "So $\\boxed{12}$. Check: $\\boxed{\\frac{1}{2", "unparseable", "correct"),
    ("12", "\\boxed{12}, as asked in \\boxed", "correct", "correct"),
    ("12", "\\boxed{11}, as asked in \\boxed", "wrong", "wrong"),
    ("12", "\\boxed{12}, as asked in \\boxed{}", "unparseable", "correct"),
    ("12", "\\boxed{12}, in the form $\\boxed{\\text{answer}}$", "wrong", "correct"),
    ("12", "So \\boxed{12", "unparseable", "unparseable"),
    ("12", "\\boxed{}", "unparseable", "unparseable"),
    ("12", "So \\boxed {12} it is, \\boxed{", "unparseable", "correct"),
]


@pytest.mark.parametrize("protocol", ["paper", "robust"])
def test_of_several_boxes_the_last_is_the_answer(patient, protocol):
    golds, completions = [row[0] for row in SEVERAL], [row[1] for row in SEVERAL]
    judged = judge("math", completions, golds, protocol=protocol, verifier=patient)
    expected = [row[2 if protocol == "paper" else 3] for row in SEVERAL]
    assert [(*row[:2], one.verdict) for row, one in zip(SEVERAL, judged, strict=True)] == [
        (*row[:2], verdict) for row, verdict in zip(SEVERAL, expected, strict=True)
    ]


SOLUTIONS = [
    # solution without a short answer, completion, under robust
    ("Adding, we get $\\boxed{7}$.", "First \\boxed{6}, so \\boxed{7}", "correct"),
    ("Adding, and then, or so, we get $\\boxed{7}$.", "First \\boxed{7}, so \\boxed{6}", "wrong"),
    ("It is, $\\text{after}$ all, $\\boxed{(3,-2)}$.", "First \\boxed{(1,1)}, then \\boxed{(3,-2)}", "correct"),
    ("They are $\\boxed{1}$ and $\\boxed{2}$.", "First \\boxed{5}. So \\boxed{1} and \\boxed{2}", "correct"),
    ("They are $\\boxed{1, 2}$.", "\\boxed{5}, no: \\boxed{1} and \\boxed{3}", "wrong"),
]


def test_without_a_short_answer_the_boxes_of_the_solution_count(patient):
    solutions, completions, expected = zip(*SOLUTIONS, strict=True)
    judged = judge("math", completions, [""] * len(SOLUTIONS), solutions, protocol="robust", verifier=patient)
    assert [one.verdict for one in judged] == list(expected)


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ("7", 1),
        ("1,440", 1),
        ("1{,}440{,}000", 1),
        ("10,\\!080", 1),
        ("1,44", 2),
        ("(3,-2)", 2),
        ("1 \\text{ and } 2", 2),
        ("\\text{Anderson or Ford}", 2),
        ("\\text{Brandon}", 1),
        ("1 \\pm \\sqrt{2}", 2),
        ("\\frac{1}{2}; 3", 2),
        ("12\\text{ cm}", 1),
    ],
)
def test_parts_of_an_answer(answer, count):
    assert parts(answer) == count


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("\\boxed{1} \\boxed{2}", ["1", "2"]),
        ("\\boxed{\\frac{1}{2}}", ["\\frac{1}{2}"]),
        ("\\boxed{\\{1,2\\}}", ["\\{1,2\\}"]),
        ("\\boxed{\\boxed{3}}", ["\\boxed{3}", "3"]),
        ("\\boxed{1 \\boxed{2}", ["2"]),
        ("} \\boxed{4}", ["4"]),
        ("\\boxed{[0,1\\}}", ["[0,1\\}"]),
        ("\\boxed", []),
        ("\\boxed{1", []),
    ],
)
def test_boxes_that_are_closed(text, contents):
    assert [box.content(text) for box in closed(text)] == contents


@pytest.mark.parametrize(
    "piece", ["\\boxed{", "\\boxed", "\\boxed{1}", "{", "}", "\\boxed{1},", "\\boxed{1 and ", "1,"]
)
def test_boxes_are_found_in_time_linear_in_hostile_text(piece):
    assert is_linear(lambda text: with_last_boxes(text, 2), piece, 400_000)
    assert is_linear(parts, piece, 400_000)
