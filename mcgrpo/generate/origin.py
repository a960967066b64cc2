"""Completions that are there already, of the same model, data, settings and code, are not drawn again.

A job that draws several benchmarks runs again if one of them is new, changed or was interrupted; the others may have
taken hours. What a file depends on is in `{benchmark}.json` beside it once it is complete. Standard library only.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mcgrpo.files import RecordError, as_record, read_json, write_json
from mcgrpo.sums import check_seal


@dataclass(frozen=True)
class Origin:
    """`.../completions/{benchmark}.json`: all that a file of completions depends on.

    `model` is one SHA-256 for all files of the model, `data` that of the benchmark's file; `settings` are the study's
    `evaluation`; `code` is the fingerprint of the code that drew them.
    """

    model: str
    data: str
    prompt: str
    settings: dict[str, Any]
    seed: int
    code: str


def is_drawn(output: Path, origin: Origin) -> bool:
    """Whether these completions are there, unchanged since they were written, and of this origin (with `code`)."""
    path = output.with_suffix(".json")
    try:
        check_seal(output)
        there = output.is_file() and as_record(Origin, read_json(path), str(path)) == origin
    except (FileNotFoundError, RecordError):
        return False
    if there and origin.code:
        print(f"{output} is there already, of the same model, data, settings and code", flush=True)
    return there and bool(origin.code)


def record(output: Path, origin: Origin) -> None:
    """Write down the origin of completions that are complete."""
    write_json(output.with_suffix(".json"), asdict(origin))
