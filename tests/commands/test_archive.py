"""Archives as such, of two small files: whatever is done to them shows, and nothing gets out of them."""

import io
import lzma
import re
import shutil
import tarfile
import tracemalloc
import zlib
from functools import partial

import pytest
from evidence_archives import failures, listed

from mcgrpo.commands.evidence import archive
from mcgrpo.commands.evidence.archive import ArchiveError
from mcgrpo.commands.evidence.limits import Limits
from mcgrpo.commands.evidence.unpack import CHUNK, unpack

ONE, TWO = b"one\n", b"two\n" * 200


def small(folder):
    """An archive of two files."""
    archive.write(folder / "small.tar.xz", "top", {"one": ONE, "b/two": TWO}, {})
    return folder / "small.tar.xz"


def unpacked(path, limits=None):
    """What `unpack` makes of an archive, in an empty folder beside it."""
    into = path.with_name("into")
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    return unpack(path, into, limits)


def damage(folder, data):
    """What `unpack` finds wrong, or else which files are not what they were."""
    (folder / "damaged.tar.xz").write_bytes(data)
    found = unpacked(folder / "damaged.tar.xz")
    content = {name: (found.folder / name).read_bytes() for name in found.files}
    assert all(entry.size == len(content[name]) for name, entry in found.files.items())
    assert all(entry.sha256 == archive.sha256(content[name]) for name, entry in found.files.items())
    return found.fault or [name for name in {"one", "b/two", *content}
                           if content.get(name) != {"one": ONE, "b/two": TWO}.get(name)]  # fmt: skip


def made(folder, *members, compress=lzma.compress):
    """An archive of (TarInfo or name, content) as Python's tarfile writes it, and what `unpack` says of it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info = tarfile.TarInfo(info) if isinstance(info, str) else info
            if info.size:  # a claim
                stream.write(info.tobuf(tarfile.PAX_FORMAT))
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    path = folder / "made.tar.xz"
    path.write_bytes(compress(stream.getvalue()))
    return path


def fault(folder, *members, limits=None, **options):
    return unpacked(made(folder, *members, **options), limits).fault


class TestAChangedByte:
    def test_of_the_compressed_stream_is_found(self, tmp_path):
        data = small(tmp_path).read_bytes()
        for place in range(len(data)):
            assert damage(tmp_path, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]), place
        tails, cuts = (bytes(4), bytes(CHUNK), data), (-1, len(data) // 2)
        for wrong in (*(data + tail for tail in tails), *(data[:end] for end in cuts), b"", b"no archive"):
            assert damage(tmp_path, wrong)

    def test_of_a_header_or_of_padding_is_found(self, tmp_path):
        tar = lzma.decompress(small(tmp_path).read_bytes())
        end = tar.rstrip(b"\0").rfind(ONE) + 512  # behind it there are only zeros
        for place in (*range(0, end, 31), *range(end, len(tar), 509), len(tar) - 1):
            changed = tar[:place] + bytes([tar[place] ^ 1]) + tar[place + 1 :]
            assert damage(tmp_path, lzma.compress(changed, preset=0)), place

    def test_in_which_file_it_is_is_said(self, tmp_path):
        tar = bytearray(lzma.decompress(small(tmp_path).read_bytes()))
        tar[100] ^= 1  # the mode of the first
        assert damage(tmp_path, lzma.compress(bytes(tar))).startswith("at its start: no header of a tar archive")
        tar[100] ^= 1
        tar[-1] ^= 1
        assert damage(tmp_path, lzma.compress(bytes(tar))) == "the end of the tar archive is not empty"


def test_nothing_but_names_and_contents_is_in_it(tmp_path):
    with tarfile.open(small(tmp_path)) as tar:
        assert tar.getnames() == ["top/b/two", "top/one"]
        for member in tar:
            assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
            assert member.mode == 0o644


class TestAHostileArchive:
    @pytest.mark.parametrize(
        ("name", "kind", "target", "told"),
        [
            ("top/../../escaped", tarfile.REGTYPE, "", "not a regular file with a plain name"),
            ("{outside}/escaped", tarfile.REGTYPE, "", "not a regular file with a plain name"),
            ("top/./a", tarfile.REGTYPE, "", "not a regular file with a plain name"),
            ("top//a", tarfile.REGTYPE, "", "not a regular file with a plain name"),
            ("top/a\x1b[2Jverified", tarfile.REGTYPE, "", "not a regular file with a plain name"),
            ("top/a\u202egnp.exe", tarfile.REGTYPE, "", "not a regular file with a plain name"),
            ("top/" + "a" * 300, tarfile.REGTYPE, "", "too long a name"),
            ("top/" + "a/" * 40 + "a", tarfile.REGTYPE, "", "too long a name"),
            ("top/link", tarfile.SYMTYPE, "{outside}", "a symbolic link"),
            ("top/link", tarfile.LNKTYPE, "../../escaped", "a hard link"), ("top/pipe", tarfile.FIFOTYPE, "", "a pipe"),
            ("top/device", tarfile.CHRTYPE, "", "a device"), ("top/folder", tarfile.DIRTYPE, "", "a folder"),
            ("top/sparse", tarfile.GNUTYPE_SPARSE, "", "a sparse file"),
        ],
    )  # fmt: skip
    def test_writes_nothing_outside_and_is_named(self, tmp_path, name, kind, target, told):
        outside = tmp_path / "outside"
        outside.mkdir()
        hostile = tarfile.TarInfo(name.format(outside=outside))
        hostile.type, hostile.linkname = kind, target.format(outside=outside)
        said = fault(tmp_path, ("top/a", ONE), (hostile, b""), ("top/link/through", ONE))
        assert told in said and said.isprintable()
        assert {path.name for path in tmp_path.iterdir()} == {"outside", "into", "made.tar.xz"}
        assert list(outside.iterdir()) == []
        assert failures(tmp_path / "made.tar.xz") == {"archive": (said,)}

    @pytest.mark.parametrize(
        ("names", "told"),
        [
            (("top/a", "zbeside"), "zbeside: not below top"), (("top/a", "top/a"), "top/a: stands behind top/a"),
            (("top/b", "top/a"), "top/a: stands behind top/b"), (("top/a", "top/a/b"), "another file stands in its"),
            (("top",), "top: not below top"),
        ],
    )  # fmt: skip
    def test_with_files_in_each_others_place_is_named(self, tmp_path, names, told):
        assert told in fault(tmp_path, *((name, b"") for name in names))

    def test_with_other_metadata_is_named(self, tmp_path):
        for attribute, value in (("mode", 0o777), ("uid", 1), ("uname", "me"), ("mtime", 1)):
            info = tarfile.TarInfo("top/a")
            setattr(info, attribute, value)
            assert "its header is not what `mcgrpo bundle` writes" in fault(tmp_path, (info, ONE))

    def test_with_another_header_than_a_long_name_is_named(self, tmp_path):
        info = tarfile.TarInfo("top/a")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(40 << 30)}
        assert "an extended header of something else than one name" in fault(tmp_path, (info, ONE))
        info.pax_headers = {"comment": "a" * 10_000}
        assert "an extended header of 10,0" in fault(tmp_path, (info, ONE))

    def test_that_is_honest_about_long_and_foreign_names_is_read(self, tmp_path):
        entries = {"größe/問題.json": ONE, "a" * 150: TWO, "b/" * 20 + "c": ONE}
        archive.write(tmp_path / "a.tar.xz", "top", entries, {})
        found = unpack(tmp_path / "a.tar.xz", tmp_path)
        assert not found.fault and found.files.keys() == entries.keys()


class TestABomb:
    """The bounds are lowered where the real ones would take long; those of the command line are tried by the bench."""

    def test_of_zeros_ends_at_its_ratio_and_takes_no_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr("mcgrpo.commands.evidence.limits.ALWAYS_FREE", 12 << 20)
        path = tmp_path / "bomb.tar.xz"
        with lzma.open(path, "wb", preset=0) as stream:
            info = tarfile.TarInfo("top/zeros")
            info.size = 16 << 20
            stream.write(info.tobuf(tarfile.PAX_FORMAT))
            for _ in range(16):
                stream.write(bytes(1 << 20))
        tracemalloc.start()
        said = unpacked(path).fault
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
        tracemalloc.stop()
        told = r"its first [\d,]+ bytes unpack to 12,[\d,]+ or more, the bound is 200 times .*--max-ratio\)"
        assert re.fullmatch(told, said)
        assert sum(path.stat().st_size for path in (tmp_path / "into").rglob("*") if path.is_file()) < 13 << 20

    def test_that_claims_more_than_a_file_may_have_is_refused_at_its_header(self, tmp_path):
        info = tarfile.TarInfo("top/a")
        info.size = 40 << 30
        assert "an extended header of something else than one name" in fault(tmp_path, (info, b""))
        info.size = 5 << 30
        said = "top/a: is said to have 5,368,709,120 bytes, the bound is 268,435,456 (--max-file-mb)"
        assert fault(tmp_path, (info, b"")) == said
        info.name, info.size = "top/a.json", 17 << 20
        assert "the bound is 16,777,216" in fault(tmp_path, (info, b""))

    def test_of_many_files_or_folders_is_refused(self, tmp_path):
        few = Limits(files=5)
        assert fault(tmp_path, *((f"top/{n}", b"") for n in range(4)), limits=few) == ""
        told = "more than 5 files and folders (--max-files)"
        assert fault(tmp_path, *((f"top/{n}", b"") for n in range(5)), limits=few) == told
        assert fault(tmp_path, ("top/a/b/c/d/e", b""), limits=few) == told

    def test_of_many_bytes_is_refused(self, tmp_path):
        rows = b"".join(str(number).encode() for number in range(300_000))
        path = made(tmp_path, ("top/a", rows), compress=partial(lzma.compress, preset=0))
        assert unpacked(path, Limits(total_mb=2)).fault == ""
        assert unpacked(path, Limits(total_mb=1)).fault.endswith("the bound is 1 MiB (--max-total-mb)")

    def test_of_a_dictionary_that_fills_the_memory_is_refused(self, tmp_path):
        said = fault(tmp_path, ("top/a", ONE), compress=_with_dictionary)
        assert "Memory usage limit exceeded" in said


def _with_dictionary(data):
    """Compressed by a small dictionary, and said to need a large one: writing it would take the memory, too."""
    content = bytearray(lzma.compress(data, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]))
    place = content.index(bytes([0x21, 1]), 12) + 2  # LZMA2, one byte of properties: the size of its dictionary
    content[place] = 38  # 1 GiB
    header = content[12 : 12 + (content[12] + 1) * 4 - 4]
    content[12 + len(header) : 16 + len(header)] = zlib.crc32(header).to_bytes(4, "little")
    return bytes(content)


def test_of_a_file_that_changes_meanwhile_is_refused(tmp_path):
    (tmp_path / "grades.jsonl").write_text("{}")
    with pytest.raises(ArchiveError, match=r"grades\.jsonl: changed while it was packed"):
        archive.write(tmp_path / "a.tar.xz", "a", listed(tmp_path), {"grades.jsonl": "0" * 64})
    assert listed(tmp_path).keys() == {"grades.jsonl"}
