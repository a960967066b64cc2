"""How numbers are spelt in tables, figures and sentences: percent, points, intervals, and what may be said of them."""

import math
import re

from mcgrpo.methods import METHODS, UNTRAINED
from mcgrpo.stats import verdict

MISSING = "missing"


def label(method: str) -> str:
    """The printed name of a method."""
    return "untrained" if method == UNTRAINED else METHODS[method].label


def rollouts(method: str, num_generations: int) -> str:
    """Rollouts drawn per prompt, as the paper spells them: "8", "8+1", and nothing for the untrained model."""
    if method == UNTRAINED:
        return ""
    extra = METHODS[method].extra_rollouts
    return f"{num_generations}+{extra}" if extra else f"{num_generations}"


def points(fraction: float) -> str:
    """A signed difference in percentage points, one decimal, with a true minus sign."""
    return f"{100 * fraction:+z.1f}".replace("-", "−")


def accuracy(mean: float, low: float) -> str:
    """A fraction in percent with the half-width of its (symmetric) interval; "missing" where it is NaN."""
    if math.isnan(mean):
        return MISSING
    return f"{100 * mean:.1f}" + ("" if math.isnan(low) else f" ± {100 * (mean - low):.1f}")


def gain(difference: float, low: float, high: float) -> str:
    """A paired difference in points with its half-width, and "indistinguishable" where the interval holds zero."""
    if math.isnan(difference):
        return MISSING
    kind = verdict(low, high)
    if kind == "unknown":
        return f"{points(difference)} (one seed)"
    text = f"{points(difference)} ± {100 * (high - difference):.1f}"
    return f"{text} indistinguishable" if kind == "indistinguishable" else text


def interval(difference: float, low: float, high: float) -> str:
    """A paired difference as prose has it: "+4.4 points [+2.1, +6.7]"."""
    if math.isnan(low):
        return f"{points(difference)} points"
    return f"{points(difference)} points [{points(low)}, {points(high)}]"


def seconds(value: float) -> str:
    """Seconds, to a tenth below 100."""
    if math.isnan(value):
        return MISSING
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def span(values) -> str:
    """The whole numbers that occur: "5", or "1 to 5"."""
    low, high = int(min(values)), int(max(values))
    return f"{low}" if low == high else f"{low} to {high}"


def escape_latex(text: str) -> str:
    """Plain text as LaTeX."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text)
