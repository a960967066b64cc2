"""Throughput of the MATH grader beside math-verify in a loop: `python bench/grading.py --golds test.jsonl`.

Each gold gets 8 rollouts: correct, wrong and reformatted answers at the end of a page of working. The loop parses and
verifies one by one, with math-verify's own time limits; the grader runs on 1 and on 2 workers, with its limits. Golds
are rows with `answer` and, optionally, `solution`, such as MATH-500's test.jsonl; by default a few hand-written ones.
All see the same completions, in turns of a block of golds, so that other load on the machine affects them equally; the
first block is a warm-up. `disagreements` are verdicts that differ.
"""

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from math_verify import parse, verify

from mcgrpo import command_line
from mcgrpo.files import RecordError, atomic, iter_json_lines
from mcgrpo.grade.math_grader import GOLD, STRICT
from mcgrpo.grade.rewards import is_accurate
from mcgrpo.grade.verifier import Verifier

ROLLOUTS = 8
HAND_WRITTEN = (
    ("\\frac{3}{4}", "Of four equal parts three are left, so the answer is $\\boxed{\\frac{3}{4}}$."),
    ("12", "We have $3 \\cdot 4 = \\boxed{12}.$"),
    ("2\\sqrt{5}", "The distance is $\\sqrt{4^2 + 2^2} = \\sqrt{20} = \\boxed{2\\sqrt{5}}.$"),
    ("x^2 - 1", "Expanding, $(x-1)(x+1) = \\boxed{x^2 - 1}.$"),
    ("(1, 2)", "Adding the equations gives $x = 1$ and $y = 2$: $\\boxed{(1, 2)}.$"),
    ("[0, 4)", "The root needs $x \\ge 0$ and the logarithm $x < 4$: $\\boxed{[0, 4)}.$"),
    ("\\begin{pmatrix} 1 \\\\ -2 \\end{pmatrix}", "It is $\\boxed{\\begin{pmatrix} 1 \\\\ -2 \\end{pmatrix}}.$"),
    ("\\frac{\\pi}{6}", "Since $\\sin\\theta = \\frac12$, $\\theta = \\boxed{\\frac{\\pi}{6}}.$"),
)
Rollouts = list[tuple[str, str, str]]


def read_golds(path: Path | None) -> list[tuple[str, str]]:
    """(answer, solution) of every row of a file, or of the hand-written sample."""
    if path is None:
        return list(HAND_WRITTEN)
    return [(str(row["answer"]), row.get("solution") or "") for _, row in iter_json_lines(path)]


def variants(answer: str, rng: random.Random) -> list[str]:
    """Eight answers to one prompt: four right (two rewritten), four wrong (two alike), in random order."""
    wrong = str(rng.randint(2, 99))
    rewritten = answer.replace("\\frac", "\\dfrac").replace(" ", "")
    answers = [answer, answer, rewritten, rewritten, wrong, wrong, f"{answer} + 1", f"\\frac{{{wrong}}}{{7}}"]
    return rng.sample(answers, len(answers))


def working(rng: random.Random) -> str:
    """Some 1500 characters such as a model writes before it answers."""
    steps = (f"Step {i}: we find ${rng.randint(1, 9)}x + {rng.randint(1, 99)} = {i}$, so\n" for i in range(1, 36))
    return "".join(steps)


def make(golds: list[tuple[str, str]], rng: random.Random) -> Rollouts:
    """(answer, solution, completion) for eight rollouts of every gold, rollouts of one gold side by side."""
    return [
        (
            answer,
            solution,
            f"{working(rng)}Therefore, the final answer is: $\\boxed{{{variant}}}$. I hope it is correct",
        )
        for answer, solution in golds
        for variant in variants(answer, rng)
    ]


def loop(rollouts: Rollouts) -> list[bool]:
    """Math-verify one by one."""
    return [
        verify(
            parse(solution or f"${answer}$", GOLD, extraction_mode="first_match"),
            parse(completion, STRICT, extraction_mode="first_match"),
        )
        for answer, solution, completion in rollouts
    ]


def grader(verifier: Verifier) -> Callable[[Rollouts], list[bool]]:
    """The project's grader."""

    def grade(rollouts: Rollouts) -> list[bool]:
        answers, solutions, completions = zip(*rollouts, strict=True)
        return [is_accurate(judged.verdict) for judged in verifier.judge(answers, solutions, completions)]

    return grade


def measure(blocks: list[Rollouts]) -> pd.DataFrame:
    """One row per way: its seconds over all blocks but the first, and how often its verdict is not the loop's."""
    with Verifier(1) as one, Verifier(2) as two:
        ways = {"math-verify in a loop": loop, "1 worker": grader(one), "2 workers": grader(two)}
        seconds, wrong = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0)
        for number, block in enumerate(blocks):
            expected = None
            for name, way in ways.items():
                start = time.perf_counter()
                found = way(block)
                seconds[name] += (time.perf_counter() - start) if number else 0
                expected = expected or found
                wrong[name] += sum(a != b for a, b in zip(found, expected, strict=True))
    count = sum(map(len, blocks[1:]))
    took = pd.Series(seconds)
    speed = {"per_second": (count / took).round(1), "ratio": (took["math-verify in a loop"] / took).round(2)}
    table = pd.DataFrame({"completions": count, "seconds": took.round(3), **speed, "disagreements": wrong})
    return table.rename_axis("way").reset_index()


def main() -> None:
    """Measure, print a table, and write it as CSV."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--golds", type=Path, help="JSONL with answer and solution (default: hand-written)")
    parser.add_argument("--csv", type=Path, help="write the table here")
    parser.add_argument("--blocks", type=int, default=5, help="turns that each way takes (%(default)s)")
    options = parser.parse_args()
    with command_line.errors(RecordError):
        golds, rng = read_golds(options.golds), random.Random(0)
    size = -(-len(golds) // options.blocks)
    # The hand-written golds are too few to share out: each block has them all, with other answers.
    shares = [golds[at : at + size] for at in range(0, len(golds), size)] if options.golds else [golds] * options.blocks
    table = measure([make(share, rng) for share in shares])
    print(table.to_string(index=False))
    if options.csv:
        with atomic(options.csv) as temporary:
            table.to_csv(temporary, index=False)


if __name__ == "__main__":
    main()
