r"""What a reader should know before trusting a data set, and before trusting a test set beside a training set.

`mcgrpo.data` writes the audit of each data set; `python -m mcgrpo.audit --plan plan.json --data FOLDER --output FILE`
compares the training questions of every setting with those of its benchmarks.
"""

import argparse
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mcgrpo.grade import self_check
from mcgrpo.records import Example, read_json, read_jsonl, write_json

LISTED = 20
"""Ids that a list holds at most; its count is of all."""

FORMS: tuple[tuple[str, re.Pattern], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("none", r"^$"),
        ("integer", r"^-?\d+$"),
        ("decimal", r"^-?\d*\.\d+$"),
        ("integer with commas", r"^-?\d{1,3}(,\\?!?\d{3})+$"),
        ("fraction", r"^-?(\\[dt]?frac\{?-?\d+\}?\{?\d+\}?|\d+/\d+)$"),
        ("matrix", r"\\begin\{"),
        ("text", r"\\(text|mbox)|^[A-Za-z ]{2,}$"),
        ("equation or relation", r"=|<|>|\\(le|ge|ne|in)\b"),
        ("interval or tuple", r"^\\?(left)?[(\[].*,.*\\?(right)?[)\]]$"),
        ("list", r","),
    )
)
USUAL = {"gsm8k": {"integer"}, "math": {"integer", "decimal", "fraction", "none", "expression"}}
"""Forms that need no mention. A MATH row may have no short answer: its gold is the box of its solution."""


def form(answer: str) -> str:
    """What an answer looks like: the first of `FORMS` that it matches, else `expression`."""
    return next((name for name, pattern in FORMS if pattern.search(answer)), "expression")


def normalised(question: str) -> str:
    """A question as far as a person would call it the same: letters and digits, in lower case."""
    return " ".join(re.findall(r"\w+", question.lower()))


def listed(ids: Iterable[str]) -> dict[str, Any]:
    """A list of ids for a file: how many, and the first of them."""
    ids = list(ids)
    return {"count": len(ids), "ids": ids[:LISTED]}


def repeated(examples: Sequence[Example]) -> list[str]:
    """Ids of examples whose (normalised) question stood before."""
    seen: set[str] = set()
    return [e.id for e in examples if (text := normalised(e.question)) in seen or seen.add(text)]


def overlap(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Any]:
    """Test questions that are training questions too: to the letter, and normalised."""
    exact = {example.question for example in train}
    alike = {normalised(question) for question in exact}
    return {
        "test": len(test),
        "exact": listed(e.id for e in test if e.question in exact),
        "normalised": listed(e.id for e in test if normalised(e.question) in alike),
    }


def unusual(examples: Sequence[Example], task: str) -> dict[str, Any]:
    """Ids of examples by the form of their answer, usual ones left out."""
    found: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        found[form(example.answer)].append(example.id)
    return {name: listed(ids) for name, ids in sorted(found.items()) if name not in USUAL[task]}


def audit(examples: Sequence[Example], task: str, source: Any) -> dict[str, Any]:
    """The audit of one data set: its source, and of each split what `describe` says."""
    splits: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        splits[example.split].append(example)
    found = {"source": source, "task": task, "splits": {name: describe(part, task) for name, part in splits.items()}}
    if {"train", "test"} <= set(splits):
        found["overlap"] = overlap(splits["train"], splits["test"])
    return found


def describe(examples: Sequence[Example], task: str) -> dict[str, Any]:
    """Rows; golds that the grader does not grade correct against themselves; questions that repeat; odd answers."""
    return {
        "rows": len(examples),
        "golds_not_correct": listed(self_check(examples, task)),
        "repeated_questions": listed(repeated(examples)),
        "unusual_answers": unusual(examples, task),
    }


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Compare the training questions of each setting with its benchmarks."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the study's data sets")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    plan = read_json(options.plan)

    def split(dataset: str, name: str) -> list[Example]:
        return [e for e in read_jsonl(options.data / f"{dataset}.jsonl", Example) if e.split == name]

    trained_on = {run["setting"]: run["dataset"] for run in plan["runs"]}
    report = {
        setting: {b: overlap(split(dataset, "train"), split(b, "test")) for b in plan["benchmarks"][setting]}
        for setting, dataset in trained_on.items()
    }
    write_json(options.output, report)
    for setting, benchmarks in report.items():
        for benchmark, found in benchmarks.items():
            if count := found["normalised"]["count"]:
                print(f"{setting}: {count} of {found['test']} questions of {benchmark} are trained on")


if __name__ == "__main__":
    main()
