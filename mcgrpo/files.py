"""Read and write records as JSONL, JSON and CSV; reading validates, writing is atomic.

A JSONL file has one record per line; a CSV file has one record per row, in the order of the fields. Standard library
only.
"""

import csv
import dataclasses
import errno
import json
import os
import shutil
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, TypeVar

R = TypeVar("R")


FULL = (errno.ENOSPC, errno.EDQUOT)
"""Of an `OSError`: the disk, or what one may use of it, is full."""


class RecordError(ValueError):
    """A file breaks its contract; the message names the file, the line and the field."""


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Write to a temporary file beside `path`, and rename it to `path` when the block succeeds.

    The data are on disk before the rename, so that a crash of the machine leaves no partial file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.tmp")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
        flush(path.parent)
    except OSError as error:
        if error.errno in FULL:
            error.filename = str(path)  # a write does not say where it failed
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """A temporary folder beside `output`, renamed to it when the block succeeds.

    Raises:
        FileExistsError: if `output` exists and is not an empty folder.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise FileExistsError(f"{output} exists already: remove it first")
    temporary = output.with_name(f".{output.name}.{token_hex(4)}.tmp")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.rename(output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def as_new(folder: Path) -> None:
    """Give the files of a folder the mode of new files: safetensors leaves weights readable to their owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o666 & ~mask)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk; not every file system supports this for a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def as_record(kind: type[R], row: Mapping[str, Any], where: str) -> R:
    """Convert a mapping to a record, checking names, required fields and types.

    Raises:
        RecordError: names `where` and the wrong field.
    """
    if wrong := _wrong_names(kind, tuple(row)):
        raise RecordError(f"{where}: {wrong}")
    hints, tests, _ = _fields_of(kind)
    for name, value in row.items():
        if not tests[name](value):
            raise RecordError(f"{where}: field {name!r} should be {_spell(hints[name])}, not {value!r}")
    made = {name: make(row[name], f"{where}: {name}") for name, make in _parts_of(kind).items() if name in row}
    return kind(**row | made)


@cache
def _wrong_names(kind: type, names: tuple[str, ...]) -> str:
    """What is wrong with the names of a row's fields; empty if nothing is."""
    hints, _, required = _fields_of(kind)
    for name in names:
        if name not in hints:
            return f"unknown field {name!r} for {kind.__name__} (it has: {', '.join(hints)})"
    return next((f"field {name!r} is missing" for name in hints if name in required and name not in names), "")


@cache
def _fields_of(kind: type) -> tuple[dict[str, Any], dict[str, Callable[[Any], bool]], frozenset[str]]:
    """The hint of every field, the test of its values, and the names of those without a default."""
    missing, hints = dataclasses.MISSING, typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    required = {f.name for f in fields if f.default is missing and f.default_factory is missing}
    return hints, {name: _test_of(hint) for name, hint in hints.items()}, frozenset(required)


@cache
def _parts_of(kind: type) -> dict[str, Callable[[Any, str], Any]]:
    """How the fields that hold records are made, from a value and the name of its place."""
    return {name: make for name, hint in typing.get_type_hints(kind).items() if (make := _maker_of(hint))}


def _maker_of(hint: Any) -> Callable[[Any, str], Any] | None:
    """Of a record, or of a list or the values of a dictionary of records; None of anything else."""
    if dataclasses.is_dataclass(hint):
        return lambda value, where: as_record(hint, value, where)
    make = next(filter(None, map(_maker_of, typing.get_args(hint))), None)
    if make is None:
        return None
    if typing.get_origin(hint) is list:
        return lambda values, where: [make(value, f"{where} {number}") for number, value in enumerate(values, 1)]
    if typing.get_origin(hint) is dict:
        return lambda values, where: {name: make(value, f"{where} {name}") for name, value in values.items()}
    return lambda value, where: None if value is None else make(value, where)


def _test_of(hint: Any) -> Callable[[Any], bool]:
    """Whether a value is of a type; made once for a field."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return lambda value: isinstance(value, dict)
    if origin is list and any(map(dataclasses.is_dataclass, options)):
        return lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value)
    if origin is Literal:
        return options.__contains__
    if origin in (types.UnionType, typing.Union):
        if len(options) == 2 and typing.get_origin(options[0]) is Literal and options[1] is type(None):
            return (*typing.get_args(options[0]), None).__contains__
        if all(map(_is_plain, options)):  # in a fifth of the time
            kinds = (*options, int) if float in options else options
            return lambda value: isinstance(value, kinds) and (value.__class__ is not bool or bool in options)
        tests = [_test_of(option) for option in options]
        return lambda value: any(fits(value) for fits in tests)
    if hint is Any:
        return lambda value: True
    if hint in (int, float):
        allowed = int if hint is int else (int, float)
        return lambda value: isinstance(value, allowed) and not isinstance(value, bool)
    if origin is dict:
        fits_item = _test_of(options[1])
        return lambda value: isinstance(value, dict) and all(fits_item(item) for item in value.values())
    return lambda value: isinstance(value, origin or hint)


def _is_plain(hint: Any) -> bool:
    """Whether a value is of a type if it is an instance of it, but for bool, which is an int."""
    plain = typing.get_origin(hint) is None and isinstance(hint, type) and hint is not Any
    return plain and not dataclasses.is_dataclass(hint)


def _spell(hint: Any) -> str:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return " or ".join("null" if each is type(None) else _spell(each) for each in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, typing.get_args(hint)))
    return getattr(hint, "__name__", str(hint)) if typing.get_origin(hint) is None else str(hint)


def iter_json_lines(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`path:line`, object) for every line of a JSONL file.

    Raises:
        RecordError: for a missing file, or a line that is not a JSON object in UTF-8.
    """
    try:
        with Path(path).open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield f"{path}:{number}", _object(line.rstrip(), path, number)
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file") from None


def _object(text: bytes, path: str | Path, number: int) -> dict[str, Any]:
    """The JSON object that starts at a line of a file."""
    try:
        value = _DECODER.decode(text.decode())
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}:{number}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        number += error.lineno - 1
        raise RecordError(f"{path}:{number}: not valid JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # two equal keys, a number of thousands of digits, or too deep
        raise RecordError(f"{path}:{number}: cannot be read ({str(error).partition(';')[0]})") from None
    if not isinstance(value, dict):
        raise RecordError(f"{path}:{number}: a JSON object is expected, not {type(value).__name__}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"key {twice!r} stands twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
"""One for all lines: `json.loads` with a hook makes one for each."""


def read_jsonl(path: str | Path, kind: type[R]) -> list[R]:
    """All records of a JSONL file; errors as in `iter_json_lines` and `as_record`."""
    return [as_record(kind, row, where) for where, row in iter_json_lines(path)]


def write_jsonl(path: str | Path, rows: Iterable[Any]) -> None:
    """Write records (or plain mappings), one per line, atomically."""
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, default=_fields) + "\n")


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def read_json(path: str | Path) -> dict[str, Any]:
    """Read one JSON object from a file.

    Raises:
        RecordError: for a missing or invalid file, or one without an object.
    """
    try:
        return _object(Path(path).read_bytes(), path, 1)
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file") from None


def write_text(path: str | Path, text: str) -> None:
    """Write text in UTF-8, atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, content: Any) -> None:
    """Write one JSON value, indented, atomically."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_csv(path: str | Path, kind: type, rows: Iterable[Any]) -> None:
    """Write records as CSV with the fields as header, atomically; None is an empty field."""
    names = [field.name for field in dataclasses.fields(kind)]
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            writer.writerow(["" if (value := getattr(row, name)) is None else value for name in names])
