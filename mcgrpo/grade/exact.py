"""Where math-verify takes two unequal values for equal: `differ`. Imported only in the workers of the verifier.

Math-verify rounds decimals to six places and drops what is below 1e-15, also within tuples, sets and equations: it
takes 1/2^77 for 1/2^76, 0.0000012 for 0.0000009 and 1.6e-19 for 3.2e-19.
"""

from collections.abc import Iterator
from typing import Any

from math_verify.grader import get_pct_val, is_assignment_relation, is_equation, take_last_relation
from sympy import (
    Add,
    Expr,
    FiniteSet,
    Float,
    Interval,
    MatrixBase,
    Mul,
    Pow,
    Rational,
    Symbol,
    Tuple,
    preorder_traversal,
)
from sympy.core.relational import Equality, Relational
from sympy.logic.boolalg import And

CLOSE = Rational(1, 10**6)
"""Relative difference at which a value with a decimal in it is still equal: six digits, as math-verify has for 1."""
CLOSE_CONSTANTS = Rational(1, 10**12)
"""The same of constants without decimals, such as roots, which are compared numerically."""
LEAST_DIGITS = 3
"""Significant digits that a decimal needs to be a rounding of another number."""
MOST_PARTS = 30
"""Sets of more elements are compared by math-verify alone."""


def differ(gold: Any, given: Any) -> bool:
    """Whether an answer that math-verify accepts is certainly another value than the gold.

    Compared are numbers, and those in tuples, intervals, finite sets, matrices and sides of equations and inequalities;
    nothing is said of others. A decimal is equal to what it rounds: to less than a unit of its last place, if it has
    `LEAST_DIGITS` digits, or to `CLOSE`.
    """
    gold, given = _sides(gold, given)
    if isinstance(gold, Relational) and isinstance(given, Relational):
        return _relations_differ(gold, given)
    if isinstance(gold, And) and isinstance(given, And) and len(gold.args) == len(given.args):
        return any(differ(*pair) for pair in zip(_ordered(gold), _ordered(given), strict=True))
    golds, others = list(_parts(gold)), list(_parts(given))
    if len(golds) != len(others) or len(golds) > MOST_PARTS:
        return False
    if isinstance(gold, FiniteSet) or isinstance(given, FiniteSet):
        return not _matched(golds, others)
    return any(_unequal(*pair) for pair in zip(golds, others, strict=True))


def _sides(gold: Any, given: Any) -> tuple[Any, Any]:
    """As math-verify: where one of the two is an equation and the other is not, its right side."""
    if is_equation(given) and not is_equation(gold):
        return gold, take_last_relation(given).rhs
    if is_assignment_relation(gold) and not is_equation(given):
        return take_last_relation(gold).rhs, given
    return gold, given


def _ordered(chain: And) -> list[Any]:
    return sorted(chain.args, key=str)


def _relations_differ(gold: Relational, given: Relational) -> bool:
    """Only if one side is the same in both, and is not 0 in an equation: those are compared up to a factor."""
    turned = given.reversed
    for other in (given, turned):
        if type(gold) is type(other):
            is_scaled = isinstance(gold, Equality)
            if gold.lhs == other.lhs and not (is_scaled and gold.lhs == 0):
                return differ(gold.rhs, other.rhs)
            if gold.rhs == other.rhs and not (is_scaled and gold.rhs == 0):
                return differ(gold.lhs, other.lhs)
    return False


def _parts(value: Any) -> Iterator[Any]:
    """The numbers, or other expressions, that a value is made of."""
    if isinstance(value, Interval):
        yield from (value.start, value.end)
    elif isinstance(value, MatrixBase):
        yield from value.flat()
    elif isinstance(value, Tuple | FiniteSet):
        for each in value.args:
            yield from _parts(each)
    elif isinstance(value, Equality):
        yield value.rhs
    else:
        yield value


def _matched(golds: list[Any], others: list[Any]) -> bool:
    """Whether each of these has another one that may be equal to it; a number is equal to none with symbols."""
    left = list(others)
    for gold in golds:
        alike = (other for other in left if _is_symbolic(gold) == _is_symbolic(other) and not _unequal(gold, other))
        if (found := next(alike, None)) is None:
            return False
        left.remove(found)
    return True


def _is_symbolic(value: Any) -> bool:
    return not isinstance(value, Expr) or bool(value.free_symbols)


def _unequal(one: Any, other: Any) -> bool:
    """Whether two values are certainly not equal; 50% is 50, and 0.5."""
    if one == other or not (isinstance(one, Expr) and isinstance(other, Expr)):
        return False
    return all(_are_apart(a, b) for a in _readings(one) for b in _readings(other))


def _readings(value: Expr) -> tuple[Expr, ...]:
    percent = get_pct_val(value)
    return (value,) if percent is None else (percent, percent / 100)


def _are_apart(one: Expr, other: Expr) -> bool:
    if one.free_symbols != other.free_symbols:
        return False
    units = [_last_place(each) for each in (one, other) if each.has(Float)]
    a, b = (_without_floats(each).doit() for each in (one, other))
    apart = (a - b).expand()
    if units:
        return not apart.free_symbols and _is_beyond(apart, max(*units, CLOSE * _size(a), CLOSE * _size(b)))
    if apart.is_Rational:
        return not apart.is_zero
    if apart.free_symbols:
        return _is_polynomial(apart)  # expanded, and not 0
    return _is_beyond(apart, CLOSE_CONSTANTS * max(_size(a), _size(b)))


def _without_floats(value: Expr) -> Expr:
    """Decimals as the rational numbers that were written."""
    return value.xreplace({each: Rational(repr(float(each))) for each in value.atoms(Float)})


def _last_place(value: Expr) -> Rational:
    """A unit of the last place of a decimal (`1.6`, `1.6 x 10^-19`) that has enough digits to be rounded; else 0."""
    number = _without_floats(value).doit()
    if not number.is_Rational or 10**400 % number.q:
        return Rational(0)
    places = next(places for places in range(401) if 10**places % number.q == 0)
    digits = len(str(abs(number.p) * 10**places // number.q))
    return Rational(1, 10**places) if digits >= LEAST_DIGITS else Rational(0)


def _is_beyond(apart: Expr, limit: Any) -> bool:
    """Whether a constant is not 0 and at least as large as a limit."""
    return not apart.is_zero and bool(_size(apart) >= limit)


def _size(value: Expr) -> Any:
    """The absolute value; 0 where it is no finite number, so that nothing is said of it."""
    size = abs(value) if value.is_Rational else abs(value.evalf(30, maxn=300))
    return size if size.is_number and size.is_finite and size.is_comparable else Rational(0)


def _is_polynomial(value: Expr) -> bool:
    """Whether a value has rational coefficients and whole powers of symbols alone."""
    return all(
        isinstance(each, Add | Mul | Symbol | Rational)
        or (isinstance(each, Pow) and each.base.is_Symbol and each.exp.is_Integer and each.exp > 0)
        for each in preorder_traversal(value)
    )
