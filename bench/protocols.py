r"""Compare the protocols `robust` and `paper`: `python bench/protocols.py --golds test.jsonl`.

Golds are rows with `answer` and, optionally, `solution`, such as MATH-500's test.jsonl; by default a few hand-written
ones. Completions are made from each gold: the gold itself; correct ones in other forms (a thin space in thousands, a
degree sign, a full stop, a repeating decimal); wrong ones (the last digit changed, another base). The table counts the
accepted ones by kind and protocol, followed by the golds that a protocol refuses as written.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from mcgrpo.files import iter_json_lines
from mcgrpo.grade.answers import gold_text
from mcgrpo.grade.rewards import is_accurate, judge
from mcgrpo.grade.verifier import Verifier

PROTOCOLS = ("paper", "robust")
HAND_WRITTEN = (
    "12",
    "10,000",
    "2010_4",
    "90^\\circ",
    "\\frac{1}{3}",
    "-\\frac{5}{6}",
    "(1, 2)",
    "x^2 - 1",
    "2\\sqrt{5}",
)
INTEGER, FRACTION = re.compile(r"-?[0-9]+"), re.compile(r"(-?)\\frac\{([0-9]+)\}\{([0-9]+)\}")
THOUSANDS = re.compile(r"(?<![0-9.])([0-9]{1,3}),?(?:\\!)?([0-9]{3})(?![0-9])")
BASE = re.compile(r"([0-9]+)_\{?([0-9]+)\}?")


def forms(gold: str) -> Iterator[tuple[str, str]]:
    """(kind, answer) of one gold; kinds that begin with `wrong` are."""
    yield "the gold itself", gold
    if THOUSANDS.fullmatch(gold):
        yield "right: thin space", THOUSANDS.sub(r"\1\\,\2", gold)
    if INTEGER.fullmatch(gold):
        yield "right: full stop", f"{gold}."
    if gold.endswith("^\\circ"):
        yield "right: degree sign", gold.replace("^\\circ", "°")
    if (match := FRACTION.fullmatch(gold)) and (decimal := repeating(int(match[2]), int(match[3]))):
        yield "right: repeating decimal", match[1] + decimal
    if match := BASE.fullmatch(gold):
        yield "right: braces around the base", f"{match[1]}_{{{match[2]}}}"
        yield "right: without the base", match[1]
        yield "wrong: another base", f"{match[1]}_{int(match[2]) + 1}"
    digits = list(re.finditer("[0-9]", BASE.sub(lambda match: match[1], gold)))
    if digits:
        place = digits[-1].start()
        yield "wrong: another last digit", gold[:place] + str((int(gold[place]) + 1) % 10) + gold[place + 1 :]


def repeating(numerator: int, denominator: int) -> str:
    r"""A fraction as `0.1\overline{6}`; empty where its decimals end, or repeat after more than twelve."""
    whole, rest = divmod(numerator, denominator)
    seen: dict[int, int] = {}
    digits = ""
    while rest and rest not in seen and len(digits) < 12:
        seen[rest] = len(digits)
        digit, rest = divmod(10 * rest, denominator)
        digits += str(digit)
    if not rest or rest not in seen:
        return ""
    start = seen[rest]
    once, again = digits[:start], digits[start:]
    tens = 10 ** len(once)
    value = whole + Fraction(int(once or "0"), tens) + Fraction(int(again), (10 ** len(again) - 1) * tens)
    if value != Fraction(numerator, denominator):
        raise ValueError(f"{numerator}/{denominator} is not {whole}.{once}({again})")
    return f"{whole}.{once}\\overline{{{again}}}"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--golds", type=Path)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    golds = [(gold, "") for gold in HAND_WRITTEN]
    if options.golds:
        golds = [(str(row["answer"]), row.get("solution") or "") for _, row in iter_json_lines(options.golds)]
    rows = [(kind, made, *gold) for gold in golds for kind, made in forms(gold_text(gold[0]))]
    kinds, answers, keys, solutions = zip(*rows, strict=True)
    completions = [f"The answer is $\\boxed{{{answer}}}$." for answer in answers]
    judged = {}
    with Verifier(options.workers, timeout=30) as verifier:
        for protocol in PROTOCOLS:
            judged[protocol] = judge("math", completions, keys, solutions, protocol=protocol, verifier=verifier)
    accepted = {
        name: [is_accurate(one.verdict) and one.gold_parsable for one in found] for name, found in judged.items()
    }
    made = Counter(kinds)
    print(f"{len(golds)} golds, {len(rows)} completions; accepted:\n{'':32}{'made':>8}{'paper':>8}{'robust':>8}")
    for kind in made:
        counts = [sum(yes for of, yes in zip(kinds, accepted[name], strict=True) if of == kind) for name in PROTOCOLS]
        print(f"{kind:32}{made[kind]:8}" + "".join(f"{count:8}" for count in counts))
    for place, (kind, answer, key, _) in enumerate(rows):
        paper, robust = (accepted[name][place] for name in PROTOCOLS)
        if kind == "the gold itself" and not robust:
            print(f"refused in its own spelling{'' if not paper else ' by robust alone'}: {key!r}")
        elif kind.startswith("wrong") and robust:
            print(f"accepted though {kind}: {answer!r} for {key!r}{'' if paper else ' by robust alone'}")


if __name__ == "__main__":
    main()
