"""Test questions in training data: `python -m mcgrpo.data.overlap --plan plan.json --data FOLDER --output FILE`."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mcgrpo import command_line
from mcgrpo.files import RecordError, read_jsonl, write_json
from mcgrpo.records import Example
from mcgrpo.study.planned import read_plan

LISTED = 20
"""Maximum number of ids in a list; its count includes all."""

_PARTS = re.compile(r"\d+(?:\.\d+)?|[^\W\d_]+|[+*/=<>^]|-(?![^\W\d_]{2})")
"""Numbers, words and arithmetic signs; a hyphen before a word is not a sign."""


def normalised(question: str) -> str:
    """A question in lower case, without punctuation and white space.

    Arithmetic signs stay, as `x+1` and `x-1` are two questions.
    """
    return " ".join(_PARTS.findall(question.lower())) or question


def listed(ids: Iterable[str]) -> dict[str, Any]:
    """The number of ids and the first `LISTED` of them."""
    ids = list(ids)
    return {"count": len(ids), "ids": ids[:LISTED]}


def overlap(train: Sequence[Example], test: Sequence[Example]) -> dict[str, Any]:
    """Test questions that are also training questions, compared `normalised`."""
    trained = {normalised(example.question) for example in train}
    return {"test": len(test), "normalised": listed(e.id for e in test if normalised(e.question) in trained)}


def main() -> None:
    """Compare the training questions of each setting with its benchmarks."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the study's data sets")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()

    def split(dataset: str, name: str) -> list[Example]:
        return [e for e in read_jsonl(options.data / f"{dataset}.jsonl", Example) if e.split == name]

    with command_line.errors(RecordError):
        plan = read_plan(options.plan)
        trained_on = {run.setting: run.dataset for run in plan.runs}
        report = {
            setting: {b: overlap(split(dataset, "train"), split(b, "test")) for b in plan.benchmarks[setting]}
            for setting, dataset in trained_on.items()
        }
        write_json(options.output, report)
    for setting, benchmarks in report.items():
        for benchmark, shared in benchmarks.items():
            if count := shared["normalised"]["count"]:
                print(f"{setting}: {count} of {shared['test']} questions of {benchmark} are trained on")


if __name__ == "__main__":
    main()
