"""Answers as people write them, and those beside them that stay wrong, under the protocol `robust`."""

import time

import pytest

from mcgrpo.grade.plain import MOST, bare_number, in_latex, with_tex_signs, without_choice, without_unit
from mcgrpo.grade.rewards import judge
from mcgrpo.grade.tasks import TASKS

UNITS = [
    # number, a unit, and what is none
    ("5", "inches", "pi"),
    ("1/2", "mile", "pi"),
    ("2", "of them", "pi r"),
    ("6", "miles/h", "pi/n"),
    ("2", "men", "theta"),
    ("5", "dollars a day", "alpha"),
    ("5", "ft", "infinity"),
    ("5", "km/h", "xy"),
    ("5", "apples", "abc"),
    ("3", "in", "ln y"),
    ("3", "chairs", "choose n"),
    ("7", "models", "mod n"),
    ("2", "squares", "sqrt"),
    ("5", "hours", "arcsin"),
    ("6", "sides each", "times n"),
    ("100", "degrees F", "omega"),
    ("7", "PM", "minus n"),
    ("36", "times as many", "uv"),
    ("36", "sec per lap", "sec x"),
    ("12", "log cabins", "log n"),
]

BOXED = [
    # gold, answer in a box that is right, one that is not
    ("\\frac{47}{6}", "7 5/6", "7 4/6"),
    ("7\\frac{5}{6}", "7 5/6", "6 5/6"),
    ("-7\\frac{5}{6}", "-7 5/6", "-6\\frac{1}{6}"),
    ("\\frac{15}{2}", "7½", "7⅓"),
    ("7 5/6", "\\frac{47}{6}", "\\frac{35}{6}"),
    ("\\frac{\\pi}{2}", "pi/2", "pi/3"),
    ("\\frac{\\pi}{2}", "π/2", "2π"),
    ("\\frac{3\\pi}{4}", "3pi/4", "3/4"),
    ("\\frac{\\sqrt{3}}{2}", "sqrt(3)/2", "sqrt(3/2)"),
    ("\\sqrt{\\frac{3}{2}}", "sqrt(3/2)", "sqrt(3)/2"),
    ("\\sqrt{2+\\sqrt{3}}", "sqrt(2+sqrt(3))", "sqrt(2)+sqrt(3)"),
    ("2\\sqrt{3}", "2sqrt3", "sqrt6"),
    ("2\\sqrt{3}", "2*√3", "2+√3"),
    ("\\sqrt{x+1}", "√(x+1)", "√x+1"),
    ("2", "cbrt(8)", "sqrt(8)"),
    ("-2\\pi", "-2*pi", "2*pi"),
    ("x^2+1", "x²+1", "x³+1"),
    ("x^2+1", "x**2+1", "2x+1"),
    ("x^{10}", "x¹⁰", "x¹"),
    ("x^{-1}", "x⁻¹", "-x"),
    ("x^{-1}", "x^(-1)", "x-1"),
    ("e^{2x}", "e^(2x)", "e^2x"),
    ("\\infty", "∞", "-∞"),
    ("-\\infty", "-infinity", "infinity"),
    ("(0,\\infty)", "(0,∞)", "[0,∞)"),
    ("6x", "6·x", "6+x"),
    ("6", "2×3", "2+3"),
    ("-5", "−5", "5"),
    ("-5", "–5", "5"),
    ("3", "3", "3–5"),
    ("1.6\\times 10^{-19}", "1.6e-19", "1.6e-18"),
    ("1.6\\times 10^{-19}", "1.6×10⁻¹⁹", "1.6×10⁻¹⁸"),
    ("\\sin x", "sin(x)", "cos(x)"),
    ("\\ln 2", "ln(2)", "log(2)/2"),
    ("\\theta", "theta", "\\phi"),
    ("12", "\\textbf{(B)}\\ 12", "\\textbf{(B)}\\ 13"),
    ("12", "\\textbf{(B) } 12", "\\textbf{(B) } 21"),
    ("12", "\\mathrm{(E)}~12", "\\mathrm{(E)}"),
    ("12", "\\text{(B) 12}", "\\text{(B) 1}"),
    ("12", "(B) 12", "(B)"),
    ("12", "B. 12", "12 B"),
    ("-12", "\\textbf{(A)}\\ -12", "\\textbf{(A)}\\ 12"),
    ("\\frac{1}{2}", "\\textbf{(D)}\\ \\frac{1}{2}", "\\textbf{(D)}\\ 2"),
    ("\\textbf{(B)}\\ 12", "12", "B"),
    ("\\text{(B)}", "\\textbf{(B)}\\ 12", "\\textbf{(C)}\\ 12"),
    ("B", "(B) 12", "(A) 12"),
    ("2B", "2B", "\\textbf{(A)}\\ 2"),
    ("3A", "(A) 3", "(A)+3"),
    ("p \\cdot i", "p i", "\\pi"),
    ("\\text{(C)}", "(C).", "(C), (D)"),
    ("\\text{(C)}", "C)", "\\text{(C) or (E)}"),
    ("\\text{(C)}", "\\text{(C)}", "\\text{(C)}\\cdot 2"),
    ("A", "\\text{Option A}", "(A)(B)"),
    ("4000000", "4\\text{ million}", "4\\text{ thousand}"),
    ("48", "4\\text{ dozen}", "4"),
    ("4", "4\\text{ ways}", "4\\text{ million}"),
    ("\\frac{20000}{\\pi}", "\\frac{20,000}{\\pi}", "\\frac{2,000}{\\pi}"),
    ("1000\\pi", "1{,}000\\pi", "1{,}001\\pi"),
    ("1200\\sqrt{3}", "1,200\\sqrt{3}", "1,300\\sqrt{3}"),
    ("2500x", "2,500x", "2,501x"),
    ("(1,200)", "(1,200)", "1200"),
    ("6-5i", "6 - 5 i", "6 + 5 i"),
    ("6-5i", "6-5\\,i", "5-6\\,i"),
    ("p - q", "p - q.", "q - p."),
    ("\\text{Evelyn}", "\\text{Evelyn.}", "\\text{Eve.}"),
    ("\\frac{14}{3}", "\\frac{14}{3}.", "\\frac{13}{3}."),
    ("(3,4]", "(3,4].", "[3,4]."),
    ("5x - 7y + 11z + 4 = 0", "-5x+7y-11z-4=0", "5x-7y+11z+5=0"),
    ("x-1=0", "1-x=0", "x-2=0"),
    ("20\\%", "20\\,\\%", "21\\,\\%"),
    ("36", "36 dollars", "37 dollars"),
    ("15", "15 cm^2", "15 x"),
    ("36", "36\\,cm", "36 thousand"),
    *((gold, f"{gold} {unit}", f"{gold} {product}") for gold, unit, product in UNITS),
    ("0.1", "10 percent", "10 people"),
    ("2.5", "2.5 percent", "25 percent"),
    ("0.025", "2.5 percent", "25 percent"),
    ("10", "10 percent", "11 percent"),
    ("36", "\\$36 dollars", "\\$37 dollars"),
    ("1234", " 1{,}234 feet", " 1{,}235 feet"),
    ("1, 10000", "1, 10,000", "1, 1,000"),
    ("10, 100, 200", "10, 100,200", "10, 100200"),
    ("\\frac{3}{4}", "3/4 cup", "3/5 cup"),
    ("36\\text{ dollars}", "36 dollars", "37 dollars"),
    ("400000", "4\\text{ hundred thousand}", "4\\text{ hundred}"),
    ("400000", "4\\text{ hundred-thousand}", "4\\text{ Hundred}"),
    ("4000000", "4\\,\\text{million}", "4~\\textrm{ billion}"),
    ("4000000", "4 \\text{ Million people and animals}", "4\\text{ million and a half}"),
    ("500000", "\\frac{1}{2}\\text{ million}", "\\frac{1}{3}\\text{ million}"),
    ("5", "5", "5\\text{ million five hundred}"),
    ("4", "4", "4\\mathrm{\\ million}"),
    ("5000000", "5\\text{ million dollars}", "5\\text{ million five hundred}"),
    ("200", "2\\text{ hundred}", "2\\text{ hundred fifty}"),
    ("5", "5~", "6~"),
    ("\\emptyset", "\\varnothing", "\\{0\\}"),
]


@pytest.mark.parametrize("place", [1, 2], ids=["right", "wrong"])
def test_what_people_write_in_a_box(patient, place):
    golds, answers = [row[0] for row in BOXED], [f"It is $\\boxed{{{row[place]}}}$." for row in BOXED]
    judged = judge("math", answers, golds, protocol="robust", verifier=patient)
    found = [(row[0], row[place], one.verdict == "correct") for row, one in zip(BOXED, judged, strict=True)]
    assert found == [(row[0], row[place], place == 1) for row in BOXED]


def test_plain_text_after_an_anchor(patient):
    texts = ["The final answer is $pi/2$. I hope it is correct", "The final answer is $pi/3$. I hope it is correct"]
    judged = judge("math", texts, ["\\frac{\\pi}{2}"] * 2, protocol="robust", verifier=patient)
    assert [one.verdict for one in judged] == ["correct", "wrong"]


TAGS = [
    # gold, right, and wrong though alike
    ("31", "$31$", "$3$1"),
    ("31", "\\$31", "\\$31 or \\$32"),
    ("31", "\\boxed{31}", "\\boxed{13}"),
    ("31", "$\\boxed{31}$", "\\boxed{31}\\boxed{2}"),
    ("31", "\\(31\\)", "\\(31+1\\)"),
    ("31", "\\text{31}", "\\text{31 or so}"),
    ("31", "**31**", "**31**2"),
    ("31", "x = 31", "x < 31"),
    ("31", "€31", "€3 1"),
    ("31", "31 apples", "31 apples and 2 pears"),
    ("31", "31 km/h", "31/2 km"),
    ("31", "$31 per hour", "31 hundred"),
    ("31", "31\\text{ dollars}", "31\\text{ thousand}"),
    ("31", "31\\%", "31\\%1"),
    ("31", "31-year-old", "31-5"),
    ("31", "31 cm^2", "31^2"),
    ("31", "31 m²", "31²"),
    ("31", "31 °C", "31 squared"),
    ("31", "31st", "31k"),
    ("31", "31 more", "31 and a half"),
    ("31", "= 31", "30 + 1"),
    ("31", "62/2", "31/2"),
    ("1250", "1{,}250", "1{,}25"),
    ("1250", "1\\,250", "1\\,2500"),
    ("1250", "$1,250.00", "$1,25"),
    ("-5", "−5", "5"),
    ("-5", "- 5", "5-"),
    ("-5", "-\\$5", "\\$5"),
    ("0.5", "1/2", "2/1"),
    ("0.5", "\\frac{1}{2}", "\\frac{1}{3}"),
    ("0.5", "½", "⅓"),
    ("0.5", "1/2 hour", "1/2/2024"),
    ("-0.5", "-1/2", "1/2"),
    ("7.5", "7 1/2", "7-1/2"),
    ("7.5", "7½ miles", "71/2"),
    ("24", "24 eggs", "2 dozen eggs"),
    ("0.5", "0.5", "1/0"),
    ("31", "31 times", "31 lakh"),
    ("31", "31 left over", "31 crore"),
    ("31", "31 third graders", "31 twelfths"),
    ("31", "(31)", "(3)1"),
    ("31", "31 €", "31 grand"),
    ("31", "$31$ dollars", "$32$ dollars"),
    ("31", "\\boxed{31} apples", "\\boxed{31} below zero"),
    ("31", "The answer is 31", "The answer is 31 or 32"),
    ("31", "31 third-graders", "31 thirds of a cup"),
    ("31", "31 tenth graders", "31 tenths of a mile"),
    ("1", "1 third grader", "1 third of a cup"),
    ("31", "31 times a week", "31 times five"),
    ("31", "31 over", "31 over four"),
    ("31", "$31 for three tickets", "31 less than ten"),
    ("31", "31 miles in two hours", "31 out of five"),
    ("31", "31 five-dollar bills", "31 hours thirty minutes"),
    ("31", "31 dollars (thirty-one dollars)", "31 point five"),
    ("31", "31 quarters left", "31 quarter-hours"),
    ("31", "31 digits of pi", "31 pi meters"),
    ("31", "31 Apples", "31 Million"),
    ("31", "31 Times", "31 times Five"),
    ("31", "31 bags of ten", "31 tens"),
    ("31", "31 turns over two hours", "31 halfs"),
    ("31", "31 eighteenth-century houses", "31 sixteenths of an inch"),
    ("31", "31 dollars", "31 quadrillion"),
    ("31", "31 inches", "31 hundredths of an inch"),
    ("31", "31 pies", "31 pi"),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), TAGS)
def test_what_people_write_in_a_tag(gold, right, wrong):
    judged = [TASKS["gsm8k"].judge_one(f"<answer>{text}</answer>", gold, "robust").verdict for text in (right, wrong)]
    assert judged[0] in ("correct", "equivalent") and judged[1] == "wrong"


@pytest.mark.parametrize("right", [row[1] for row in TAGS if row[1] not in ("0.5", "$1,250.00")])
def test_the_papers_grading_still_reads_none_of_it(right):
    (gold,) = {row[0] for row in TAGS if row[1] == right}
    assert TASKS["gsm8k"].judge_one(f"<answer>{right}</answer>", gold).verdict == "wrong"


@pytest.mark.parametrize(
    ("completion", "verdict"),
    [
        ("So the answer is $\\boxed{31}$.", "correct"),
        ("First \\boxed{30}, so \\boxed{31}.", "correct"),
        ("\\boxed{31}\n#### 30", "wrong"),
        ("\\boxed{31} <answer>30</answer>", "wrong"),
        ("<answer>31</answer> Let me check: <answer>3", "correct"),
        ("<answer>31</answer></answer>", "correct"),
        ("<answer>31</answer>, as asked in </answer> tags", "correct"),
        ("\\boxed{31} \\boxed{}", "correct"),
        ("<answer>31", "unparseable"),
        ("\\boxed{31", "unparseable"),
    ],
)
def test_a_box_of_gsm8k_counts_where_there_is_no_closed_tag(completion, verdict):
    assert TASKS["gsm8k"].judge_one(completion, "31", "robust").verdict == verdict


def test_a_number_that_a_solution_has_as_a_symbol_is_that_of_the_short_answer(patient):
    """As in ten solutions of AIME 2024."""
    answers, solution = ["\\boxed{113.0}", "\\boxed{114}"], "So it is $\\boxed{\\textbf{(113) }}$."
    judged = TASKS["math"].judge(answers, ["113"] * 2, [solution] * 2, "robust", patient)
    assert [one.verdict for one in judged] == ["correct", "wrong"]


def test_own_form_of_gsm8k_with_a_unit():
    assert TASKS["gsm8k"].judge_one("so\n#### 31 apples", "31", "robust").verdict == "equivalent"
    assert TASKS["gsm8k"].judge_one("so\n#### 32 apples", "31", "robust").verdict == "wrong"


@pytest.mark.parametrize(
    "text", ["\\text{spinning}", "\\pi", "\\sqrt{3}", "\\sin x", "\\text{pi}", "x\\cdot y", "\\mathrm{exp}", "a_1 + 2"]
)
def test_latex_and_words_stay(text):
    assert in_latex(with_tex_signs(text)) == text


@pytest.mark.parametrize("answer", ["(B)x", "A+B", "(A)^2", "B", "\\textbf{(B)}", "ABC", "(F) 12", "x"])
def test_letters_that_are_no_choice_stay(answer):
    gold = answer.strip("()") + " + AB" if answer == "(B)x" else "12"
    assert without_choice(answer, gold) == answer


HOSTILE = ["sqrt(", "^(", "(", "√(", "⁻", "7 5/6 ", "\\text{", "(B) ", "\\ ", "**", "$", "1 ", "a ", "–", "1 aa"]


@pytest.mark.parametrize("piece", [*HOSTILE, "1\\text{ dozen"])
def test_hostile_answers_take_no_time(piece):
    start = time.process_time()
    for size in (MOST, 400_000):
        text = (piece * size)[:size]
        in_latex(with_tex_signs(text))
        without_choice(text, "12")
        bare_number(text)
        without_unit(text, "12")
    assert time.process_time() - start < 2
