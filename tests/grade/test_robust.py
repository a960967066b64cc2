import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from linear_time import is_linear

sys.path.insert(0, str(Path(__file__).parents[2]))
from bench import protocols
from mcgrpo.grade.rewards import judge
from mcgrpo.grade.robust import last_answer, pair, rewritten
from mcgrpo.grade.tasks import TASKS

FORMS = [
    # gold, answer, under paper, under robust
    ("10000", "10\\,000", "wrong", "correct"),
    ("10000", "10,000", "correct", "correct"),
    ("10000", "10\\,001", "wrong", "wrong"),
    ("-1", "e^{i\\pi}", "wrong", "correct"),
    ("-1", "e^{\\pi i}", "wrong", "correct"),
    ("1", "e^{i\\pi}", "wrong", "wrong"),
    ("\\frac{1}{3}", "0.\\overline{3}", "unparseable", "correct"),
    ("\\frac{1}{3}", "0.\\overline{6}", "unparseable", "wrong"),
    ("0.\\overline{3}", "\\frac{1}{3}", "wrong", "correct"),
    ("90", "90°", "unparseable", "correct"),
    ("90^\\circ", "90\\degree", "unparseable", "correct"),
    ("90", "91°", "unparseable", "wrong"),
    ("90^\\circ", "90°.", "unparseable", "correct"),
    ("90", "90^{\\circ}.", "unparseable", "correct"),
    ("5", "5.", "unparseable", "correct"),
    ("5", "6.", "unparseable", "wrong"),
    ("(1,2)", "(1,2).", "unparseable", "correct"),
    ("2010_4", "2010_3", "correct", "wrong"),
    ("2010_4", "2010_{4}", "correct", "correct"),
    ("2010_4", "2010_{ 3 }", "correct", "wrong"),
    ("2010_4", "2010\\,_3", "correct", "wrong"),
    ("-2010_4", "-2010_{4}", "correct", "correct"),
    ("-2010_4", "-2010_3", "correct", "wrong"),
    ("2010_4", "2010", "correct", "correct"),
    ("2010", "2010_4", "correct", "correct"),
    ("2010_4", "2011_4", "wrong", "wrong"),
    ("\\frac{4}{3}", "\\frac43", "unparseable", "correct"),
    ("\\frac{4}{3}", "\\frac34", "unparseable", "wrong"),
    ("\\frac{5}{6}", "\\dfrac56", "unparseable", "correct"),
    ("\\frac{1}{72}", "\\tfrac1{72}", "unparseable", "correct"),
    ("\\frac{\\pi}{2}", "\\frac{\\pi}2", "unparseable", "correct"),
    ("\\sqrt{2}", "\\sqrt2", "unparseable", "correct"),
    ("3\\sqrt{2}", "3\\sqrt 2", "unparseable", "correct"),
    ("\\sqrt{3}", "\\sqrt2", "unparseable", "wrong"),
    ("\\frac{\\sqrt{2}}{2}", "\\frac{\\sqrt2}{2}", "unparseable", "correct"),
    ("0.5", "½", "unparseable", "correct"),
    ("0.75", "½", "unparseable", "wrong"),
    ("\\sqrt{5}", "√5", "unparseable", "correct"),
    ("\\frac{1}{2013!}", "\\frac{1}{2011!}", "correct", "wrong"),
    ("\\frac{1}{2011!}", "1/2011!", "correct", "correct"),
    ("\\frac{1}{2^{76}}", "\\frac{1}{2^{77}}", "correct", "wrong"),
    ("\\frac{1}{2^{76}}", "2^{-76}", "correct", "correct"),
    ("\\frac{1}{3}", "0.333333", "correct", "correct"),
    ("0.5", "\\frac{2}{4}", "correct", "correct"),
    ("\\sqrt{2}", "2^{1/2}", "correct", "correct"),
    ("0.5", "50\\%", "correct", "correct"),
    ("50", "50\\%", "correct", "correct"),
    ("[2,5)", "2 \\le x < 5", "wrong", "wrong"),
    ("(1,2)", "(2,1)", "wrong", "wrong"),
    ("x_1 + 2", "x_1 + 2", "correct", "correct"),
    ("10, 100, 200", "10, 100,200", "correct", "correct"),
    ("x-\\frac{1}{2^{77}} > 0", "x-\\frac{1}{2^{76}} > 0", "correct", "wrong"),
]


@pytest.mark.parametrize("protocol", ["paper", "robust"])
def test_forms_of_answers(patient, protocol):
    golds, answers = [form[0] for form in FORMS], [f"It is $\\boxed{{{form[1]}}}$." for form in FORMS]
    judged = judge("math", answers, golds, protocol=protocol, verifier=patient)
    expected = [form[2 if protocol == "paper" else 3] for form in FORMS]
    assert [(*form[:2], one.verdict) for form, one in zip(FORMS, judged, strict=True)] == [
        (*form[:2], verdict) for form, verdict in zip(FORMS, expected, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("1\\,234\\,567", "1234567"),
        ("1~234 and 1\u202f234", "1234 and 1234"),
        ("12\\,34 or 1234\\,567 or 0.123\\,456", "12\\,34 or 1234\\,567 or 0.123\\,456"),
        ("x\\,100", "x\\,100"),
        ("4.1\\overline{6}", "\\frac{25}{6}"),
        ("-0.\\bar{9}", "-1"),
        ("\\overline{AB} = 5", "\\overline{AB} = 5"),
        ("90^{°} 90^° 90° 90\\degree", "90^\\circ 90^\\circ 90^\\circ 90^\\circ"),
        ("$5.$ \\boxed{5. } 5. 5.5", "$5$ \\boxed{5 } 5. 5.5"),
        ("2e^{ i \\pi } e^{2i\\pi} \\theta e^{-i\\pi}", "2(-1) e^{2 i\\pi} \\theta (-1)"),
    ],
)
def test_texts_are_rewritten(text, reads):
    assert rewritten(text) == reads


def test_a_base_that_one_of_the_two_leaves_out_is_left_out_of_the_other():
    assert pair("\\boxed{12_{3}}", "12_3", "so $12_3$") == ("\\boxed{(12, 3)}", "(12, 3)", "so $(12, 3)$")
    assert pair("of 5_6 \\boxed{12}", "12_3", "so $12_3$") == ("of 5 \\boxed{12}", "12", "so $12$")
    assert pair("\\boxed{12_3}", "12", "so $12_3$") == ("\\boxed{12}", "12", "so $12$")


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        ("so #### 72", "correct"),
        ("#### 5\n####$72.00", "equivalent"),
        ("#### 72.", "correct"),
        ("#### 1\\,072", "wrong"),
        ("<answer>7</answer> #### 72", "wrong"),
        ("<answer>72.</answer>", "equivalent"),
        ("<answer>72", "unparseable"),
        ("72", "unparseable"),
    ],
)
def test_gsm8ks_own_form_counts_without_a_tag(completion, verdict):
    assert TASKS["gsm8k"].judge_one(completion, "72", "robust").verdict == verdict


HOSTILE = ["1\\,000", "1\\,", "9", "0.\\overline{", "e^{ i", "1_", "1_{", "1 _{ ", "^{\\circ}.", "°", "5. "]
HOSTILE += ["####", "#### ", "^{ ", "\\boxed{", "1,000", "1,\\!", " \\%", "1 \\,", "$1 ", "\\boxed{1 aa}", "</answer>"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_rewriting_is_linear_in_hostile_text(piece):
    assert is_linear(lambda text: pair(text, "1", ""), piece, 400_000)
    assert is_linear(last_answer, piece, 400_000)


def test_the_audit_counts_what_each_protocol_accepts(patient, capsys, monkeypatch):
    monkeypatch.setattr(protocols, "Verifier", lambda *_, **__: nullcontext(patient))  # it has started
    monkeypatch.setattr("sys.argv", ["protocols"])
    protocols.main()
    rows = [line.rsplit(maxsplit=3) for line in capsys.readouterr().out.splitlines()[2:]]
    accepted = {kind.strip(): [int(count) for count in counts] for kind, *counts in rows}
    golds = len(protocols.HAND_WRITTEN)
    assert accepted["the gold itself"] == [golds, golds, golds]
    assert accepted["wrong: another base"] == [1, 1, 0] and accepted["wrong: another last digit"] == [golds, 0, 0]
    right = {kind: counts for kind, counts in accepted.items() if kind.startswith("right") and "base" not in kind}
    assert len(right) == 4 and all(made == robust and paper == 0 for made, paper, robust in right.values())
