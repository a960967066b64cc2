"""The faster parts of the grader give what math-verify's own give."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_reading_faster_reads_the_same():
    code = r"""
from latex2sympy2_extended import latex2sympy
from sympy import srepr
from mcgrpo.grade.math_grader import speed_up

def read(latex):
    try:
        return srepr(latex2sympy(latex))
    except Exception as error:
        return type(error).__name__

pieces = ["0", "007", "1,000", "2.50", "12345678901234567890", "9" * 5000, r"\frac{1}{2}", r"\sqrt{8}", "x", "f(x)"]
signs = ["-", "+", "=", "<", ",", "(", ")", "^", "_", r"\pi", "%", "!", r"\cup", "[", "]", r"\text{a}", "|", "i"]
texts = [*pieces, *(a + b + c for a in [*pieces, *signs[:4]] for b in signs for c in ["0", "1,000", r"\sqrt{8}", "x"])]
slow = list(map(read, texts))
speed_up()
fast = list(map(read, texts))
assert slow == fast, [(t, s, f) for t, s, f in zip(texts, slow, fast) if s != f][:3]
assert len(set(slow)) > 200
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_comparing_rationals_faster_compares_the_same():
    code = r"""
from itertools import product
from math_verify import grader
from sympy import Integer, Rational, pi
from mcgrpo.grade.math_grader import speed_up

numbers = [Integer(0), Integer(-3), Integer(10**30), Integer(10**30 + 1), Rational(1, 3), Rational(333333, 10**6), pi]
slow = [grader.sympy_symbolic_eq(a, b) for a, b in product(numbers, repeat=2)]
speed_up()
assert slow == [grader.sympy_symbolic_eq(a, b) for a, b in product(numbers, repeat=2)]
assert sum(slow) == len(numbers)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
