"""Checks of data sets that lie here: that every row can be read, and that no split is empty."""

from collections import Counter
from pathlib import Path
from typing import Any

from mcgrpo.commands.doctor.checks import Check
from mcgrpo.commands.forecast.hub_answers import Answer
from mcgrpo.data.datasets import SPLITS, examples
from mcgrpo.files import RecordError, read_jsonl
from mcgrpo.records import Example

TOPIC = "data set"


def check_made(name: str, spec: dict[str, Any], path: Path) -> Check:
    """One that the workflow has made from this entry of the study."""
    try:
        counts = Counter(example.split for example in read_jsonl(path, Example))
    except (RecordError, OSError) as error:
        return Check("lacking", TOPIC, f"{name}: {error}", "remove the file, and it is made again")
    empty = [split for split in spec.get("splits", SPLITS) if not counts[split]]
    if empty:
        remedy = "remove the file, and it is made again"
        return Check("lacking", TOPIC, f"{name}: split {empty[0]!r} is empty in {path}", remedy)
    return Check("ok", TOPIC, f"{name}: made already, {path}")


def check_folder(name: str, spec: dict[str, Any]) -> Check:
    """One of a local folder, read as the workflow will read it."""
    try:
        counts = Counter(example.split for example in examples(spec))
    except (RecordError, OSError) as error:
        return Check("lacking", TOPIC, f"{name}: {error}", "mend the file, or leave the split out of the study")
    rows = ", ".join(f"{count} {split}" for split, count in counts.items())
    return Check("ok", TOPIC, f"{name}: {spec['folder']}, {rows}")


def empty_split(spec: dict[str, Any], answer: Answer) -> str:
    """The split that is empty on the hub, by the hub's own count; nothing where none is, or it does not say."""
    wanted = spec.get("splits", {split: {} for split in SPLITS})
    return next((split for split, how in wanted.items() if answer.rows.get(how.get("name", split)) == 0), "")
