"""Read data sets from the hub, a local folder of JSONL files or the toy task into one schema.

`python -m mcgrpo.data --spec JSON --output resources/data/NAME.jsonl` writes the examples of the requested splits, and
their origin to `NAME.source.json`. These columns are read from every source: `question` or `problem`; `answer` (GSM8K's
"... #### 72" is split into solution and answer); `solution`; `unique_id` or `id`.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcgrpo import command_line
from mcgrpo.data.toy.examples import examples as toy_examples
from mcgrpo.files import RecordError, iter_json_lines, write_json, write_jsonl
from mcgrpo.records import Example
from mcgrpo.study.hub import commit, named
from mcgrpo.study.settings import local_files, splits_of
from mcgrpo.sums import sha256

Row = tuple[str, dict[str, Any]]


def rows(spec: dict[str, Any], split: str) -> Iterator[Row]:
    """Yield (location, raw row) for one of our splits, in the order and with the columns of the source."""
    wanted = splits_of(spec).get(split, {})
    name = wanted.get("name", split)
    if "folder" in spec:
        raw = iter_json_lines(Path(spec["folder"]).expanduser() / f"{name}.jsonl")
    elif "hub" in spec:
        raw = _hub_rows(spec, name)
    else:
        made = toy_examples(split=split, count=wanted["rows"], **spec["toy"])
        raw = ((f"toy {split}[{index}]", vars(example)) for index, example in enumerate(made))
    return islice(raw, wanted.get("rows"))


def _hub_rows(spec: dict[str, Any], name: str) -> Iterator[Row]:
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError

    with named(f"{spec['hub']}, split {name!r}", DatasetsError), TemporaryDirectory() as empty:
        # What `datasets` keeps of a folder it knows again by the folder's last name, not by the rows
        fresh = {"cache_dir": empty, "keep_in_memory": True} if local_files(spec) else {}
        dataset = load_dataset(spec["hub"], spec.get("config"), split=name, revision=spec.get("revision"), **fresh)
    return ((f"{spec['hub']}/{name}[{index}]", row) for index, row in enumerate(dataset))


def as_example(row: dict[str, Any], split: str, index: int, where: str) -> Example:
    """Convert a raw row to our schema.

    Raises:
        RecordError: names the row if its question or answer is missing or of the wrong type.
    """
    asked = [row[name] for name in ("question", "problem") if row.get(name)]
    if len(asked) == 2 and asked[0] != asked[1]:
        raise RecordError(f"{where}: 'question' and 'problem' differ")
    question = asked[0] if asked else None
    if not isinstance(question, str) or not question.strip():
        raise RecordError(f"{where}: no text under 'question' or 'problem' (columns: {', '.join(row)})")
    answer, solution = row.get("answer"), row.get("solution") or ""
    if not isinstance(solution, str) or not isinstance(answer, str | int | float | None):
        raise RecordError(f"{where}: 'answer' should be text or a number, 'solution' text")
    if isinstance(answer, bool) or (isinstance(answer, float) and not math.isfinite(answer)):
        raise RecordError(f"{where}: 'answer' is {answer}, which is no number")
    identity = row.get("unique_id") or row.get("id")
    if lone := re.search("[\ud800-\udfff]", f"{identity}{question}{answer}{solution}"):
        raise RecordError(f"{where}: {lone[0]!a} is half a character")
    if isinstance(answer, str) and "####" in answer:
        solution, _, answer = answer.rpartition("####")
    if isinstance(answer, float) and answer.is_integer():
        answer = int(answer)
    if hidden := next(
        (each for each in str(answer).strip() if not each.isspace() and unicodedata.category(each) in ("Cc", "Cf")),
        None,
    ):
        raise RecordError(f"{where}: 'answer' holds {hidden!a}, which is not seen and no model writes")
    if answer in (None, "") and not solution:
        raise RecordError(f"{where}: neither 'answer' nor 'solution' (columns: {', '.join(row)})")
    return Example(
        id=f"{split}-{index}" if identity is None else str(identity),
        split=split,
        question=question.strip(),
        answer="" if answer is None else str(answer).strip(),
        solution=solution.strip(),
    )


def examples(spec: dict[str, Any]) -> list[Example]:
    """All examples of a data set, by split; ids are unique within a split.

    Raises:
        RecordError: for an invalid row, an empty split or a repeated id.
    """
    checked: list[Example] = []
    for split in splits_of(spec):
        first: dict[str, str] = {}
        for index, (where, row) in enumerate(rows(spec, split)):
            example = as_example(row, split, index, where)
            if example.id in first:
                raise RecordError(f"{where}: id {example.id!r} is already used at {first[example.id]}")
            first[example.id] = where
            checked.append(example)
        if not first:
            raise RecordError(f"{spec.get('folder') or spec.get('hub') or 'toy'}: split {split!r} is empty")
    return checked


def resolve(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with its hub revision resolved to a commit, so that the data loaded are those recorded."""
    if "hub" not in spec or local_files(spec):
        return spec
    return {**spec, "revision": commit("datasets", spec)}


def main() -> None:
    """Write one data set and its origin."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--spec", type=json.loads, required=True, help="the study's entry under datasets, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with command_line.errors(ValueError):
        spec = resolve(options.spec)
        write_jsonl(options.output, examples(spec))
        sums = {file.name: sha256(file) for file in local_files(spec)}
        write_json(options.output.with_suffix(".source.json"), spec | ({"sha256": sums} if sums else {}))
