"""Data sets of our own making, in the columns, configurations and splits of the hub's sets that the paper takes.

`datasets.load_dataset` reads a folder of them as it does the repository. Each split has short questions and, first of
all, one as long as the longest of the real set.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcgrpo.files import write_text

Row = dict[str, Any]

GOODS = ("pencils", "oranges", "lanterns", "postcards", "kites", "buttons", "melons", "notebooks", "candles", "ropes")


def shopping(index: int, terms: int) -> tuple[str, str, int]:
    """A question about so many purchases, the steps of its solution in GSM8K's notation, and the answer."""
    counts = [index + 2 + term * 7 % 11 for term in range(terms)]
    prices = [2 + (index + term * 5) % 9 for term in range(terms)]
    bought = [
        f"{count} {GOODS[term % len(GOODS)]} at ${price} each"
        for term, (count, price) in enumerate(zip(counts, prices, strict=True))
    ]
    costs = [count * price for count, price in zip(counts, prices, strict=True)]
    steps = [
        f"The {GOODS[term % len(GOODS)]} cost {count}*{price}=$<<{count}*{price}={count * price}>>{count * price}"
        for term, (count, price) in enumerate(zip(counts, prices, strict=True))
    ]
    total = "+".join(map(str, costs))
    steps.append(f"Together that is {total}=$<<{total}={sum(costs)}>>{sum(costs)}")
    question = f"For the school fair, Ama buys {', and then '.join(bought)}. How many dollars does she spend in all?"
    return question, "\n".join(steps), sum(costs)


def polynomial(index: int, terms: int) -> tuple[str, str, str]:
    r"""A problem in LaTeX with so many terms, its solution with a \boxed answer, and the answer, a fraction."""
    parts = [rf"\frac{{{index + term + 1}x^{{{term + 1}}}}}{{{2 ** (term % 5)}}}" for term in range(terms)]
    value = sum((index + term + 1) * 2 ** (4 - term % 5) for term in range(terms))
    answer = rf"\frac{{{value * 2 + 1}}}{{32}}"
    problem = (
        rf"Let $f(x) = \frac{{1}}{{32}} + {' + '.join(parts)}$ for every real number $x$. "
        r"Find $f(1)$, and express your answer as a common fraction."
    )
    solution = (
        rf"Every power of $1$ is $1$, so we add the coefficients. Those of the powers of $x$ have the sum "
        rf"$\frac{{{value}}}{{16}}$, hence $f(1) = \frac{{1}}{{32}} + \frac{{{value}}}{{16}} = \boxed{{{answer}}}$."
    )
    return problem, solution, answer


def counting(index: int, terms: int) -> tuple[str, str, str]:
    r"""A problem as of a competition, told in so many conditions, with a whole number from 0 to 999 as its answer."""
    weights = [3 + (index * 5 + term * 7) % 13 for term in range(terms)]
    told = "; ".join(rf"box $B_{{{term}}}$ holds ${weight}$ marbles" for term, weight in enumerate(weights))
    total = sum(weights)
    problem = (
        rf"Boxes $B_0, B_1, \ldots, B_{{{terms - 1}}}$ stand in a row, where {told}. Let $N$ be the number of marbles "
        r"in all boxes, and let $S = \sum_{k=1}^{N} k$. Find the remainder when $S$ is divided by $1000$."
    )
    answer = str(total * (total + 1) // 2 % 1000)
    solution = (
        rf"There are $N = {total}$ marbles, and $S = \frac{{N(N+1)}}{{2}} = {total * (total + 1) // 2}$, "
        rf"which leaves $\boxed{{{answer}}}$."
    )
    return problem, solution, answer


def gsm8k(index: int, terms: int) -> Row:
    """Columns of openai/gsm8k."""
    question, steps, answer = shopping(index, terms)
    return {"question": question, "answer": f"{steps}\n#### {answer}"}


def math(index: int, terms: int) -> Row:
    """Columns of DigitalLearningGmbH/MATH-lighteval."""
    problem, solution, _ = polynomial(index, terms)
    return {"problem": problem, "level": f"Level {index % 5 + 1}", "solution": solution, "type": "Algebra"}


def math500(index: int, terms: int) -> Row:
    """Columns of HuggingFaceH4/MATH-500."""
    problem, solution, answer = polynomial(index + 100, terms)
    row = {"problem": problem, "solution": solution, "answer": answer, "subject": "Algebra", "level": index % 5 + 1}
    return row | {"unique_id": f"test/algebra/{index}.json"}


def aime24(index: int, terms: int) -> Row:
    """Columns of HuggingFaceH4/aime_2024."""
    problem, solution, answer = counting(index, terms)
    row = {"id": 60 + index, "problem": problem, "solution": solution, "answer": answer}
    return row | {"url": f"https://example.org/aime/{index}", "year": "2024"}


def amc23(index: int, terms: int) -> Row:
    """Columns of math-ai/amc23."""
    problem, _, answer = counting(index + 50, terms)
    return {"id": index, "question": problem, "answer": answer, "url": f"https://example.org/amc/{index}"}


SETS: dict[str, tuple[Callable[[int, int], Row], str, dict[str, list[int]]]] = {
    "gsm8k": (gsm8k, "main", {"train": [18, 2, 3, 4], "test": [16, 3]}),
    "math": (math, "default", {"train": [113, 3, 50, 4, 6]}),
    "math500": (math500, "default", {"test": [50, 4]}),
    "aime24": (aime24, "default", {"train": [23, 6]}),
    "amc23": (amc23, "default", {"test": [11, 5]}),
}
"""Data set of the study -> how a row is made, its configuration, and of each split the terms of each row."""


def write(name: str, output: Path) -> None:
    """Write the folder of one data set: a file for each split, and what the hub's page says of them."""
    row_of, config, splits = SETS[name]
    files = [{"split": split, "path": f"{split}.jsonl"} for split in splits]
    write_text(
        output / "README.md", f"---\n{json.dumps({'configs': [{'config_name': config, 'data_files': files}]})}\n---\n"
    )
    for split, terms in splits.items():
        rows = [row_of(index, count) for index, count in enumerate(terms)]
        write_text(output / f"{split}.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
