"""Values that math-verify takes for equal, and which of them are: the whole of `mcgrpo.grade.exact`."""

import pytest

from mcgrpo.grade.math_grader import MathGrader

TINY, TINIER = "\\frac{1}{2^{76}}", "\\frac{1}{2^{77}}"
NOT_EQUAL = [
    # gold, answer: math-verify takes all of these for equal
    (TINIER, TINY),
    (f"({TINIER},1)", f"({TINY},1)"),
    (f"[{TINIER},1]", f"[{TINY},1]"),
    (f"(1,2,{TINIER})", f"(1,2,{TINY})"),
    (f"((1,{TINIER}),2)", f"((1,{TINY}),2)"),
    (f"\\{{{TINIER},1\\}}", f"\\{{{TINY},1\\}}"),
    (f"{TINIER}, 1", f"{TINY}, 1"),
    (f"({TINIER},1)", f"{TINY}, 1"),
    (f"{TINIER} \\text{{ or }} x", f"{TINY} \\text{{ or }} x"),
    (f"p={TINIER}", f"p={TINY}"),
    (f"p={TINIER}", "2^{-76}"),
    (TINIER, "p=2^{-76}"),
    (f"p={TINIER}", "2^{-76}=p"),
    (f"x={TINIER}, y=1", f"x={TINY}, y=1"),
    (f"x>{TINIER}", f"x>{TINY}"),
    (f"x>{TINIER}", f"{TINY}<x"),
    (f"y=x+{TINIER}", f"y=x+{TINY}"),
    (f"x^2+{TINIER}", f"x^2+{TINY}"),
    (f"\\sqrt{{2}}+{TINIER}", f"\\sqrt{{2}}+{TINY}"),
    ("\\frac{\\sqrt{2}}{2^{77}}", "\\frac{\\sqrt{2}}{2^{76}}"),
    ("\\frac{\\pi}{10^{20}}", "\\frac{\\pi}{10^{21}}"),
    ("e^{-50}", "e^{-60}"),
    ("0.0000012", "0.0000009"),
    ("0.0000012", "0.0000013"),
    ("0.0000012", "0.000001"),
    ("0.0000012", "\\frac{1}{900000}"),
    ("\\frac{1}{900000}", "0.0000012"),
    ("(0.0000012,1)", "(0.0000009,1)"),
    ("p=0.0000012", "0.0000009"),
    ("\\begin{pmatrix}0.0000012\\\\1\\end{pmatrix}", "\\begin{pmatrix}0.0000009\\\\1\\end{pmatrix}"),
    ("1.6\\times 10^{-19}", "3.2\\times 10^{-19}"),
    ("1.6\\times 10^{-19}", "1.6\\times 10^{-20}"),
    ("1.6\\times 10^{-19}", "1.602\\times 10^{-19}"),
    ("1.6\\times 10^{-19}", "\\frac{\\pi}{2}\\times 10^{-19}"),
    ("(1.6\\times 10^{-19}, 2)", "(3.2\\times 10^{-19}, 2)"),
]
EQUAL = [
    (TINIER, "2^{-77}"),
    (f"({TINIER},1)", "(2^{-77},1)"),
    (f"\\{{{TINIER},1\\}}", "\\{1,2^{-77}\\}"),
    (f"{TINIER}, 1", "1, 2^{-77}"),
    (f"(1,{TINIER})", "1, 2^{-77}"),
    ("1, \\sqrt{2}, x", "x, \\sqrt{2}, 1"),
    (f"p={TINIER}", "p=2^{-77}"),
    (f"p={TINIER}", "2^{-77}=p"),
    ("x=1, y=2", "y=2, x=1"),
    ("2x+2y=2", "x+y=1"),
    ("x>\\frac{1}{2}", "0.5<x"),
    ("1<x<2", "1<x<2"),
    ("\\text{odd}", "odd"),
    ("\\frac{1}{3}", "0.333333"),
    ("0.333333", "\\frac{1}{3}"),
    ("\\frac{1}{3}", "0.3333333333"),
    ("0.333333", "0.3333333"),
    ("\\frac{1}{81}", "0.012346"),
    ("\\frac{1}{1024}", "0.000977"),
    ("\\frac{1}{6000}", "0.00016666"),
    ("(\\frac{1}{3},1)", "(0.333333,1)"),
    ("p=\\frac{1}{3}", "0.333333"),
    ("0.5", "\\frac{2}{4}"),
    ("0.3", "0.30000000000000004"),
    ("2.50", "2.5"),
    ("0.0000012", "1.2\\times 10^{-6}"),
    ("1.6\\times 10^{-19}", "16\\times 10^{-20}"),
    ("0.5", "50\\%"),
    ("50", "50\\%"),
    ("50\\%", "\\frac{1}{2}"),
    ("12.5\\%", "0.125"),
    ("\\sqrt{2}", "2^{1/2}"),
    ("\\pi", "3.141593"),
    ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"),
    ("\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}"),
    ("\\text{odd}, 3", "3, odd"),
    ("\\cos^2 x", "1-\\sin^2 x"),
    ("(x+1)^2", "x^2+2x+1"),
    ("\\frac{x^2-1}{x-1}", "x+1"),
    ("2+3i", "3i+2"),
    ("\\infty", "+\\infty"),
    ("(-\\infty,\\frac{1}{2})", "(-\\infty,0.5)"),
    ("(0,1)\\cup(2,3)", "(2,3)\\cup(0,1)"),
    ("\\begin{pmatrix}\\frac{1}{2}\\\\1\\end{pmatrix}", "\\begin{pmatrix}0.5\\\\1\\end{pmatrix}"),
    ("\\frac{1}{2013!}", "1/2013!"),
    ("\\binom{10}{3}", "120"),
]


def verdict(gold, answer, exact):
    return MathGrader(gold, "", exact).judge(f"It is $\\boxed{{{answer}}}$.")[0]


@pytest.mark.parametrize(("gold", "answer"), NOT_EQUAL)
def test_unequal_values_that_math_verify_accepts_are_wrong(gold, answer):
    assert (verdict(gold, answer, exact=False), verdict(gold, answer, exact=True)) == ("correct", "wrong")


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal_values_stay_correct(gold, answer):
    assert (verdict(gold, answer, exact=False), verdict(gold, answer, exact=True)) == ("correct", "correct")
