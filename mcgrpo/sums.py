"""SHA-256 sums: whether a file still holds what was written to it. Lists are in the format of sha256sum.

A file is sealed by the list `NAME.sha256` beside it, a folder by the list `SHA256SUMS` in it; `sha256sum --check` reads
both. Standard library only.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from mcgrpo.files import RecordError, atomic

FOLDER_LIST = "SHA256SUMS"
WEIGHTS_LIST = f"weights/{FOLDER_LIST}"
"""What a run's record calls the list in the folder of its trained weights."""


def sha256(path: Path, size: int | None = None) -> str:
    """The SHA-256 of a file, or of its first `size` bytes, in hexadecimal."""
    with path.open("rb") as file:
        if size is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha256(file.read(size)).hexdigest()


def sums_of(folder: Path) -> dict[str, str]:
    """Name below the folder -> SHA-256, of all its files but its own list."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: sha256(path) for name, path in names.items() if name != FOLDER_LIST}


def damage(folder: Path, sums: Mapping[str, str]) -> str | None:
    """The first of the files that is missing or holds something else, in words; None if all are as they were.

    The names may be somebody else's: one that leads out of the folder is not opened.
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
    """Write the sum of a file into `NAME.sha256` beside it."""
    _write(path.with_name(f"{path.name}.sha256"), {path.name: sha256(path)})


def seal_folder(folder: Path) -> None:
    """Write the sums of a folder's files into its list."""
    _write(folder / FOLDER_LIST, sums_of(folder))


def check_seal(path: Path) -> None:
    """Refuse a sealed file that has changed; one without a list is taken as it is.

    Raises:
        RecordError: naming the file.
    """
    _check(path.parent, path.with_name(f"{path.name}.sha256"), path)


def check_sealed_folder(folder: Path) -> None:
    """Refuse a folder of which a listed file is missing or has changed; one without a list is taken as it is.

    Raises:
        RecordError: naming the file.
    """
    _check(folder, folder / FOLDER_LIST, folder)


def _write(path: Path, sums: Mapping[str, str]) -> None:
    with atomic(path, durable=True) as temporary:
        temporary.write_text("".join(f"{value}  {name}\n" for name, value in sums.items()), encoding="utf-8")


def _check(folder: Path, listed: Path, culprit: Path) -> None:
    if not listed.is_file():
        return
    rows = (line.partition("  ") for line in listed.read_text(encoding="utf-8").splitlines())
    if found := damage(folder, {name: value for value, _, name in rows}):
        raise RecordError(f"{found} (its sum is in {listed}): remove {culprit}, and it is made again")
