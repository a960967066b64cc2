"""Reading an archive that anybody may have made: only regular files are written, below one empty folder.

The archive is read once, and must be what `mcgrpo.commands.evidence.archive.write` writes: every header is compared
with the one that is written for this name and size. So links, devices, sparse files, extended headers and all else that
a tar archive may hold need no rules of their own. The first difference ends the reading.
"""

import hashlib
import lzma
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from mcgrpo.commands.evidence.limits import MIB, Limits, option

CHUNK = 1 << 18
DECODER_BYTES = 128 * MIB
"""Memory of xz; `PRESET` needs 3 MiB of it, the largest of its presets 65."""
HEADER_BYTES = 8192
"""Of an extended header, which holds a long name."""
NAME_BYTES, PART_BYTES, PARTS = 1024, 255, 32
KINDS = {"1": "a hard link", "2": "a symbolic link", "3": "a device", "4": "a device", "5": "a folder", "6": "a pipe",
         "S": "a sparse file"}  # fmt: skip


class UnpackError(ValueError):
    """What is wrong with an archive, in a sentence."""


class Entry(NamedTuple):
    """A file that was unpacked: bytes and SHA-256, as they were written."""

    size: int
    sha256: str


@dataclass
class Unpacked:
    """An archive's content: the folder of its files, each by its name there, and what is wrong with the archive."""

    folder: Path
    files: dict[str, Entry] = field(default_factory=dict)
    fault: str = ""


def unpack(archive: Path, into: Path, limits: Limits | None = None) -> Unpacked:
    """Extract an archive below an empty folder, and nowhere else, as far as it is what `mcgrpo bundle` writes.

    Raises:
        OSError: for an archive that cannot be opened, or files that cannot be written.
    """
    limits = limits or Limits()
    unpacked, top = Unpacked(into), ""
    with archive.open("rb") as file:
        stream = _Stream(file, limits)
        try:
            for name, size in _members(stream, limits):
                top = top or name.split("/")[0]
                if not name.startswith(f"{top}/"):
                    raise UnpackError(f"{name}: not below {top}, where the rest is")
                unpacked.folder = into / top
                unpacked.files[name.removeprefix(f"{top}/")] = _write(stream, into / name, size)
            stream.finish()
        except UnpackError as error:
            unpacked.fault = printable(str(error))
    return unpacked


class _Stream:
    """The bytes that an .xz file stands for, no more than its bounds allow."""

    def __init__(self, file: IO[bytes], limits: Limits):
        self.file, self.limits = file, limits
        self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECODER_BYTES)
        self.buffer = b""
        self.start = self.used = self.taken = self.given = 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes; `size` is at most `CHUNK`."""
        while len(self.buffer) - self.start < size:
            self.buffer, self.start = self.buffer[self.start :] + self._more(), 0
        self.start, self.used = self.start + size, self.used + size
        return self.buffer[self.start - size : self.start]

    def finish(self) -> None:
        """Check that nothing follows."""
        while self.start == len(self.buffer) and not self.decoder.eof:
            self.buffer, self.start = self._more(), 0
        if self.start < len(self.buffer):
            raise UnpackError("bytes after the end of the tar archive")
        if self.decoder.unused_data or self.file.read(1):
            raise UnpackError("bytes after the end of the compressed stream")

    def _more(self) -> bytes:
        if self.decoder.eof:
            raise UnpackError("the tar archive is cut short")
        chunk = self.file.read(CHUNK) if self.decoder.needs_input else b""
        if self.decoder.needs_input and not chunk:
            raise UnpackError("the compressed stream is cut short")
        self.taken += len(chunk)
        try:
            data = self.decoder.decompress(chunk, max_length=CHUNK)
        except lzma.LZMAError as error:
            raise UnpackError(f"the compressed stream is damaged before byte {self.taken}: {error}") from None
        self.given += len(data)
        if self.given > self.limits.unpacked_bytes(self.taken):
            total = self.given > self.limits.total_mb * MIB
            bound = f"{self.limits.total_mb:,} MiB" if total else f"{self.limits.ratio} times as much"
            raise UnpackError(
                f"its first {self.taken:,} bytes unpack to {self.given:,} or more, the bound is {bound} "
                f"({option('total_mb' if total else 'ratio')})"
            )
        return data


def _members(stream: _Stream, limits: Limits) -> Iterator[tuple[str, int]]:
    """Name and size of each file; its content is to be read from the stream before the next one is asked for."""
    last, paths = "", set()
    while (member := _header(stream, f"behind {last}" if last else "at its start")) is not None:
        name, size = member
        _check_name(name)
        if name <= last:
            raise UnpackError(f"{name}: stands behind {last}; files are in the order of their names, each once")
        last, parts = name, name.split("/")
        paths.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        if len(paths) > limits.files:
            raise UnpackError(f"more than {limits.files:,} files and folders ({option('files')})")
        if size > (bound := limits.file_bytes(name)):
            raise UnpackError(f"{name}: is said to have {size:,} bytes, the bound is {bound:,} ({option('file_mb')})")
        yield name, size
        if stream.read(-size % tarfile.BLOCKSIZE).strip(b"\0"):
            raise UnpackError(f"{name}: what pads it is not empty")
    end = stream.used + tarfile.BLOCKSIZE  # two empty blocks, and on to a whole record
    if stream.read(tarfile.BLOCKSIZE + -end % tarfile.RECORDSIZE).strip(b"\0"):
        raise UnpackError("the end of the tar archive is not empty")


def _header(stream: _Stream, where: str) -> tuple[str, int] | None:
    """The name and size of the next file; None at the end of the archive.

    Raises:
        UnpackError: for any other header than the one that is written for a file of this name and size.
    """
    raw = stream.read(tarfile.BLOCKSIZE)
    if not raw.strip(b"\0"):
        return None
    info = _parsed(raw, where)
    name = info.name
    if info.type == tarfile.XHDTYPE:
        if not 0 <= info.size <= HEADER_BYTES:
            raise UnpackError(f"{where}: an extended header of {info.size:,} bytes, the bound is {HEADER_BYTES:,}")
        long = stream.read(info.size + -info.size % tarfile.BLOCKSIZE)
        match = re.fullmatch(rb"\d+ path=([^\n\0]+)\n", long[: info.size])
        if not match:
            raise UnpackError(f"{where}: an extended header of something else than one name")
        name, last = match[1].decode("utf-8", "replace"), stream.read(tarfile.BLOCKSIZE)
        info, raw = _parsed(last, where), raw + long + last
    if info.type != tarfile.REGTYPE:
        kind = KINDS.get(info.type.decode("latin-1"), f"of the type {info.type!r}")
        raise UnpackError(f"{name}: {kind}, not a regular file with a plain name")
    written = tarfile.TarInfo(name)
    written.size = max(info.size, 0)
    if written.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape") != raw:
        raise UnpackError(f"{name}: its header is not what `mcgrpo bundle` writes for a file of {info.size:,} bytes")
    return name, info.size


def _parsed(raw: bytes, where: str) -> tarfile.TarInfo:
    try:
        return tarfile.TarInfo.frombuf(raw, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError) as error:
        raise UnpackError(f"{where}: no header of a tar archive ({error})") from None


def _check_name(name: str) -> None:
    parts = name.split("/")
    if name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts) or not name.isprintable():
        raise UnpackError(f"{name}: not a regular file with a plain name")
    if len(name.encode()) > NAME_BYTES or len(parts) > PARTS or max(len(part.encode()) for part in parts) > PART_BYTES:
        bound = f"{NAME_BYTES} bytes, {PART_BYTES} in a part, {PARTS} parts"
        raise UnpackError(f"{name[:80]}...: too long a name, the bound is {bound}")


def _write(stream: _Stream, path: Path, size: int) -> Entry:
    """Write the next bytes of the stream into a file that does not exist yet."""
    digest, left = hashlib.sha256(), size
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
    except (FileExistsError, NotADirectoryError):  # `a` and `a/b`; or `a` and `A`, where that is one name
        raise UnpackError(f"{path.name}: another file stands in its place") from None
    with file:
        while left:
            data = stream.read(min(left, CHUNK))
            digest.update(data)
            file.write(data)
            left -= len(data)
    return Entry(size, digest.hexdigest())


def printable(text: str, length: int = 400) -> str:
    """A text of an archive for a terminal: one line, without control characters, and not too long."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text[:length])
    return shown + "..." * (len(text) > length)
