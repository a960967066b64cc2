r"""Compare the protocols `robust` and `paper`: `python bench/protocols.py --golds test.jsonl`.

Golds are rows with `answer` and, optionally, `solution`, such as MATH-500's test.jsonl; by default a few hand-written
ones. Completions are made from each gold: the gold itself; correct ones in other forms (a thin space in thousands, a
degree sign, a full stop, a repeating decimal); wrong ones (the last digit changed, another base). The table counts the
accepted ones by kind and protocol, followed by the golds that a protocol refuses as written.
"""

import argparse
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pandas as pd

from mcgrpo import command_line
from mcgrpo.files import RecordError, iter_json_lines
from mcgrpo.grade.rewards import is_accurate, judge
from mcgrpo.grade.task import gold_text
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
    if numerator * 10**12 % denominator == 0:
        return ""
    for once, again in product(range(12), range(1, 13)):
        if once + again <= 12 and numerator * 10**once * (10**again - 1) % denominator == 0:
            digits = str(numerator * 10 ** (once + again) // denominator).zfill(once + again + 1)
            return f"{digits[: -once - again]}.{digits[-once - again : -again]}\\overline{{{digits[-again:]}}}"
    return ""


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--golds", type=Path)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    golds = [(gold, "") for gold in HAND_WRITTEN]
    if options.golds:
        with command_line.errors(RecordError):
            golds = [(str(row["answer"]), row.get("solution") or "") for _, row in iter_json_lines(options.golds)]
    rows = [(kind, made, *gold) for gold in golds for kind, made in forms(gold_text(gold[0]))]
    table = pd.DataFrame(rows, columns=["kind", "answer", "gold", "solution"]).assign(made=1)
    completions = [f"The answer is $\\boxed{{{answer}}}$." for answer in table["answer"]]
    keys, solutions = table["gold"].tolist(), table["solution"].tolist()
    with Verifier(options.workers, timeout=30) as verifier:
        for protocol in PROTOCOLS:
            judged = judge("math", completions, keys, solutions, protocol=protocol, verifier=verifier)
            table[protocol] = [is_accurate(one.verdict) and one.gold_parsable for one in judged]
    print(f"{len(golds)} golds, {len(table)} completions; accepted:")
    print(table.groupby("kind", sort=False)[["made", *PROTOCOLS]].sum().to_string(index_names=False))
    for row in table.itertuples():
        alone = " by robust alone" if row.paper != row.robust else ""
        if row.kind == "the gold itself" and not row.robust:
            print(f"refused in its own spelling{alone}: {row.gold!r}")
        elif row.kind.startswith("wrong") and row.robust:
            print(f"accepted though {row.kind}: {row.answer!r} for {row.gold!r}{alone}")


if __name__ == "__main__":
    main()
