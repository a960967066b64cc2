"""Hostile archives, which try to write or run something, exhaust resources, hang or deceive: names and their bytes.

There are two kinds: archives that `mcgrpo bundle` cannot write, and forgeries of an honest archive with a manifest that
fits the changes.
"""

import contextlib
import io
import json
import lzma
import random
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.manifest import MANIFEST, SUMS, read_manifest, sums

Attack = Callable[[Path], None]
"""Writes an archive to a path."""
Files = dict[str, bytes]

KINDS = {
    "hard link": tarfile.LNKTYPE, "symbolic link": tarfile.SYMTYPE, "folder": tarfile.DIRTYPE,
    "pipe": tarfile.FIFOTYPE, "character device": tarfile.CHRTYPE, "block device": tarfile.BLKTYPE,
    "sparse": tarfile.GNUTYPE_SPARSE, "contiguous": tarfile.CONTTYPE, "unknown": b"Z", "old": tarfile.AREGTYPE,
}  # fmt: skip
NAMES = (
    "../escaped", "top/../../escaped", "/tmp/escaped", "//escaped", "top/./a", "top//a", "top/..", ".", "..", "",
    "top/", "top/a\x1b[2J", "top/a\nverified", "top/\u202egpj", "top/a\x00b", "top/" + "a" * 300,
    "top/" + "a/" * 500, "C:\\escaped", "top/\udcff", "~/escaped", "top/a/../../../escaped", "top/" + "\u00e9" * 200,
)  # fmt: skip


def tarball(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar archive of members as they are, whatever their headers claim."""
    stream = io.BytesIO()
    for info, content in members:
        stream.write(info.tobuf(tarfile.PAX_FORMAT if info.type != tarfile.GNUTYPE_SPARSE else tarfile.GNU_FORMAT))
        stream.write(content + bytes(-len(content) % tarfile.BLOCKSIZE))
    end = stream.tell() + 2 * tarfile.BLOCKSIZE
    return stream.getvalue() + bytes(2 * tarfile.BLOCKSIZE + -end % tarfile.RECORDSIZE)


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """A member with some fields of its header set."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> Attack:
    """A tar archive of members, compressed."""
    return lambda path: path.write_bytes(lzma.compress(tarball(*members), preset=0)) and None


def bomb(mebibytes: int, *claims: tuple[str, int]) -> Attack:
    """So many MiB of zeros behind the header of a file that is as large as it claims."""

    def write(path: Path) -> None:
        with lzma.open(path, "wb", preset=0) as stream:
            for name, size in claims:
                stream.write(member(name, size=size)[0].tobuf(tarfile.PAX_FORMAT))
            for _ in range(mebibytes):
                stream.write(bytes(1 << 20))

    return write


def structures(honest: bytes, rng: random.Random) -> Iterator[tuple[str, Attack]]:
    """Archives that `mcgrpo bundle` cannot write."""
    for name in NAMES:
        yield f"paths: {name[:40]!a}", packed(member("top/0", b"a"), member(name, b"a"))
    for kind, flag in KINDS.items():
        for target in ("/etc/passwd", "../../..", "top/0"):
            link = member("top/1", type=flag, linkname=target)
            through = member("top/1/through", b"a")
            yield f"kinds: {kind} to {target}", packed(member("top/0", b"a"), link, through)
    for first, second in (("top/a", "top/a"), ("top/b", "top/a"), ("top/A", "top/a"), ("top/a", "top/a/b"),
                          ("top/\u00e9", "top/e\u0301"), ("top/a", "other/a"), ("top", "top/a")):  # fmt: skip
        yield f"names: {first} and {second}", packed(member(first, b"1"), member(second, b"2"))
    for key in ("GNU.sparse.realsize", "GNU.sparse.name", "path", "size", "linkpath", "comment", "hdrcharset"):
        for value in ("../../escaped", str(40 << 30), "a" * 7000, "a" * 5_000_000):
            headers = member("top/a", b"a", pax_headers={key: value})
            yield f"headers: {key}, {len(value)} characters", packed(headers)
    for size in (1 << 20, 300 << 20, 40 << 30, 1 << 60, -1):
        yield f"claims: {size} bytes", packed(member("top/a", size=size))
    for mebibytes in (70, 300, 1000):
        yield f"bombs: {mebibytes} MiB in a file", bomb(mebibytes, ("top/a", mebibytes << 20))
        yield f"bombs: {mebibytes} MiB behind the end", bomb(mebibytes)
    lists = b"[" + b"{}," * (5 << 20) + b"1]"
    yield "bombs: a MANIFEST.json of 15 MiB", packed(member("top/MANIFEST.json", lists))
    yield "bombs: 60,000 folders", packed(*(member(f"top/{n:06}/a/b/c", b"") for n in range(20_000)))
    yield "bombs: 120,000 files", packed(*(member(f"top/{n:06}", b"") for n in range(120_000)))
    for place in range(24):
        cut = len(honest) * place // 24
        yield f"cut: {place} of 24 parts", lambda path, cut=cut: path.write_bytes(honest[:cut]) and None
    for place in rng.sample(range(len(honest)), 40):
        flipped = honest[:place] + bytes([honest[place] ^ (1 << rng.randrange(8))]) + honest[place + 1 :]
        yield f"flipped: byte {place}", lambda path, flipped=flipped: path.write_bytes(flipped) and None
    for name, tail in (("zeros", bytes(4)), ("another stream", honest), ("a byte", b"a")):
        yield f"followed: by {name}", lambda path, tail=tail: path.write_bytes(honest + tail) and None
    for name, data in (("nothing", b""), ("noise", rng.randbytes(5000)), ("an empty tar", lzma.compress(bytes(10240)))):
        yield f"none: {name}", lambda path, data=data: path.write_bytes(data) and None


def forged(files: Files, top: str, reseal: bool = True, **changed: object) -> Attack:
    """An archive of these files, whose manifest fits them."""

    def write(path: Path) -> None:
        listed = {
            name: data for name, data in (resealed(files) if reseal else files).items() if name not in (MANIFEST, SUMS)
        }
        own = path.with_suffix(".manifest")
        own.write_bytes(files[MANIFEST])
        entries = {name: {"size": len(data), "sha256": archive.sha256(data)} for name, data in sorted(listed.items())}
        manifest = replace(read_manifest(own), files=entries, **changed)
        own.unlink()
        listed[MANIFEST] = manifest.as_bytes()
        listed[SUMS] = sums({**manifest.hashes, MANIFEST: archive.sha256(listed[MANIFEST])})
        archive.write(path, top, listed, {})

    return write


def resealed(files: Files) -> Files:
    """The files, with the sums in each training's record those of what lies beside it."""
    found = dict(files)
    for name in (name for name in files if name.endswith("/run.json")):
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
            record, folder = json.loads(files[name]), name.removesuffix("run.json")
            sums = record["outcome"]["sums"]
            there = {each: files[folder + each] for each in sums if folder + each in files}
            record["outcome"]["sums"] = {each: archive.sha256(data) for each, data in there.items()}
            found[name] = (json.dumps(record, indent=2) + "\n").encode()
    return found


def jsonl(rows: list[dict]) -> bytes:
    """Lines of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
