"""SHA-256 checksums: detect files that changed after they were written.

That of a file is in `NAME.sha256` beside it, those of a folder in `SHA256SUMS` in it, in the format of
`sha256sum --check`. Standard library only.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mcgrpo.files import RecordError, write_csv, write_text

FOLDER_LIST = "SHA256SUMS"
WEIGHTS_LIST = f"weights/{FOLDER_LIST}"
"""The key in a run's record for the checksums of its trained weights."""


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums_of(folder: Path) -> dict[str, str]:
    """Relative name -> SHA-256, of all files in a folder but its list, hidden ones and those in hidden folders.

    These are Snakemake's time stamp, records of downloads (`.cache`), or git's.
    """
    names = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    seen = {name.as_posix(): path for name, path in names.items() if not any(part[0] == "." for part in name.parts)}
    return {name: sha256(path) for name, path in seen.items() if name != FOLDER_LIST}


def damage(folder: Path, sums: Mapping[str, str]) -> str | None:
    """A message about the first file that is missing or has changed; None if there is none.

    Names may be untrusted: one that leads out of the folder is not opened.
    """
    for name, expected in sums.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            return f"{name!r} is not below {folder}"
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if sha256(path) != expected:
            return f"{path} has changed since it was written"
    return None


def seal(path: Path) -> None:
    """Write the checksum of a file, or those of a folder's files, to its list."""
    write_list(list_of(path), sums_of(path) if path.is_dir() else {path.name: sha256(path)})


def write_table(path: Path, kind: type, rows: Iterable[Any]) -> None:
    """Write a CSV file of records `kind`, and its seal."""
    write_csv(path, kind, rows)
    seal(path)


def write_sums(folder: Path) -> None:
    """Write the checksums of a folder's files beside it: Snakemake compares a file by content, a folder by its time."""
    write_list(folder.with_name(f"{folder.name}.sha256"), sums_of(folder))


def model_sum(folder: Path, listed: Path | None = None) -> str:
    """One SHA-256 over those of a model's files, which are first compared with a list of them.

    All bytes are read, as they are when the model is loaded: then from memory, so that a check costs the time of the
    hash alone.

    Args:
        folder: of the model.
        listed: the list; without one any files are accepted.

    Raises:
        RecordError: naming a file that has changed, is missing or is not on the list.
    """
    sums = sums_of(folder)
    expected = read_list(listed) if listed else sums
    if odd := next((name for name in sorted({*sums, *expected}) if sums.get(name) != expected.get(name)), None):
        raise RecordError(
            f"{folder / odd} has changed since {listed} was written: put it back, or remove that list, and the "
            "model is made again, with all that depends on it"
        )
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def write_list(path: Path, sums: Mapping[str, str]) -> None:
    """Write names with their checksums, one per line."""
    write_text(path, "".join(f"{value}  {name}\n" for name, value in sums.items()))


def read_list(path: Path) -> dict[str, str]:
    """Name -> SHA-256, of a list."""
    rows = (line.partition("  ") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: value for value, _, name in rows}


def check_seal(path: Path, needed: bool = False, remedy: str = "") -> None:
    """Refuse a file that has changed, or a folder in which one has or is missing.

    Args:
        path: the file or folder; one that is not there is left to who reads it.
        needed: whether it is refused without a list; else it is then accepted.
        remedy: what to do then; by default to remove it.

    Raises:
        RecordError: naming the file.
    """
    listed, remedy = list_of(path), remedy or f"remove {path}, and it is made again"
    if not path.exists() or not (needed or listed.is_file()):
        return
    if not listed.is_file():
        raise RecordError(f"{path}: its sum, {listed.name}, is not beside it: {remedy}")
    sums = read_list(listed)
    if fault := damage(listed.parent, sums) if sums else f"{listed} is empty":
        raise RecordError(f"{fault} (its sum is in {listed}): {remedy}")


def list_of(path: Path) -> Path:
    """Where the checksums of a file, or of a folder's files, are."""
    return path / FOLDER_LIST if path.is_dir() else path.with_name(f"{path.name}.sha256")
