r"""Audit of a data set: unreadable or unusual answers, repeated questions, overlap of train and test.

It is a job of its own, so that a change of the audit does not rebuild data and rerun trainings.

`python -m mcgrpo.data.audit --task math --data NAME.jsonl --source NAME.source.json --output NAME.audit.json`
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.data.overlap import listed, normalised, overlap
from mcgrpo.files import RecordError, read_json, read_jsonl, write_json
from mcgrpo.grade.answers import TASKS
from mcgrpo.grade.completions import self_check
from mcgrpo.grade.rewards import judge
from mcgrpo.grade.verifier import Verifier, WorkerError
from mcgrpo.records import Example

FORMS: tuple[tuple[str, re.Pattern], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("none", r"^$"),
        ("integer", r"^-?\d+$"),
        ("decimal", r"^-?\d*\.\d+$"),
        ("integer with commas", r"^-?\d{1,3}(,\\?!?\d{3})+$"),
        ("fraction", r"^-?(\\[dt]?frac\{?-?\d+\}?\{?\d+\}?|\d+/\d+)$"),
        ("mixed number", r"^-?\d+ ?\\[dt]?frac"),
        ("number in a base", r"^\d+_\{?\d+\}?$"),
        ("matrix", r"\\begin\{"),
        ("text", r"\\(text|mbox)|^[A-Za-z ]{2,}$"),
        ("unit or currency", r"\\circ|[$%]"),
        ("equation or relation", r"=|<|>|\\(le|ge|ne|in)\b"),
        ("interval or tuple", r"^\\?(left)?[(\[].*,.*\\?(right)?[)\]]$"),
        ("list", r","),
    )
)
USUAL = {"gsm8k": {"integer"}, "math": {"integer", "decimal", "fraction", "none", "expression"}}
"""Forms that are not reported. A MATH row may have no short answer: its gold is the box in its solution."""


def form(answer: str) -> str:
    """The form of an answer: the first of `FORMS` that it matches, else `expression`."""
    return next((name for name, pattern in FORMS if pattern.search(answer)), "expression")


def repeated(examples: Sequence[Example]) -> list[str]:
    """Ids of examples whose (normalised) question occurs earlier."""
    seen: set[str] = set()
    return [e.id for e in examples if (text := normalised(e.question)) in seen or seen.add(text)]


def unusual(examples: Sequence[Example], task: str) -> dict[str, Any]:
    """Ids of examples by the form of their answer, without the usual forms."""
    by_form: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        by_form[form(example.answer)].append(example.id)
    return {name: listed(ids) for name, ids in sorted(by_form.items()) if name not in USUAL[task]}


def audit(examples: Sequence[Example], task: str, source: Any, verifier: Verifier | None = None) -> dict[str, Any]:
    """The audit of a data set: its source, the description of each split, and test questions in the training split."""
    splits: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        splits[example.split].append(example)
    described = {name: describe(part, task, verifier) for name, part in splits.items()}
    report = {"source": source, "task": task, "splits": described}
    if {"train", "test"} <= set(splits):
        report["overlap"] = overlap(splits["train"], splits["test"])
    return report


def describe(examples: Sequence[Example], task: str, verifier: Verifier | None = None) -> dict[str, Any]:
    """Describe one split: rows, golds that the grader does not parse or accept, repeated questions, unusual answers.

    Every gold is checked: the 7500 of MATH take about 13 seconds on one core.
    """
    failed = set(self_check(examples, task, verifier))
    suspects = [example for example in examples if example.id in failed]
    answers, solutions = [e.answer for e in suspects], [e.solution for e in suspects]
    judged = judge(task, [""] * len(suspects), answers, solutions, verifier=verifier)
    unparsable = [e.id for e, judgement in zip(suspects, judged, strict=True) if not judgement.gold_parsable]
    return {
        "rows": len(examples),
        "golds_unparsable": listed(unparsable),
        "golds_not_correct": listed(example.id for example in suspects),
        "repeated_questions": listed(repeated(examples)),
        "unusual_answers": unusual(examples, task),
    }


def main() -> None:
    """Audit one data set."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--task", choices=TASKS, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True, help="the origin of the data, NAME.source.json")
    parser.add_argument("--workers", type=int, help="processes for math (default: one per core, up to 8)")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with command_line.errors(RecordError, WorkerError), Verifier(options.workers) as verifier:
        examples, source = read_jsonl(options.data, Example), read_json(options.source)
        report = audit(examples, options.task, source, verifier)
    write_json(options.output, report)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
