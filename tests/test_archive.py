"""Archives as such, of two small files: whatever is done to them shows, and nothing gets out of them."""

import io
import lzma
import shutil
import tarfile
from collections import Counter

import pytest
from evidence_archives import failures, listed

from mcgrpo.evidence import archive
from mcgrpo.evidence.archive import ArchiveError, unpack

ONE, TWO = b"one\n", b"two\n" * 200


def small(folder):
    """An archive of two files."""
    archive.write(folder / "small.tar.xz", "top", {"one": ONE, "b/two": TWO}, {})
    return folder / "small.tar.xz"


def damage(folder, data):
    """What `unpack` finds wrong, or else which files are not what they were."""
    (folder / "damaged.tar.xz").write_bytes(data)
    into = folder / "into"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    found = unpack(folder / "damaged.tar.xz", into)
    assert {path.name for path in into.iterdir()} <= {"content"}
    content = {name: (found.folder / name).read_bytes() for name in found.names}
    return found.faults or [name for name in {"one", "b/two", *content}
                            if content.get(name) != {"one": ONE, "b/two": TWO}.get(name)]  # fmt: skip


class TestAChangedByte:
    def test_of_the_compressed_stream_is_found(self, tmp_path):
        data = small(tmp_path).read_bytes()
        for place in range(len(data)):
            assert damage(tmp_path, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]), place
        for wrong in (
            data + bytes(4),
            data + bytes(archive.CHUNK),
            data + data,
            data[:-1],
            data[: len(data) // 2],
            b"",
            b"no archive",
        ):
            assert damage(tmp_path, wrong)

    def test_of_a_header_or_of_padding_is_found(self, tmp_path):
        tar = lzma.decompress(small(tmp_path).read_bytes())
        for place in range(0, len(tar), 31):
            changed = tar[:place] + bytes([tar[place] ^ 1]) + tar[place + 1 :]
            assert damage(tmp_path, lzma.compress(changed, preset=0)), place

    def test_near_which_file_it_is_is_said(self, tmp_path):
        tar = bytearray(lzma.decompress(small(tmp_path).read_bytes()))
        tar[-1] ^= 1
        (fault,) = damage(tmp_path, lzma.compress(bytes(tar)))
        assert fault.startswith(f"byte {len(tar) - 1} of the tar is not what") and fault.endswith("top/one")


def test_nothing_but_names_and_contents_is_in_it(tmp_path):
    with tarfile.open(small(tmp_path)) as tar:
        assert tar.getnames() == ["top/b/two", "top/one"]
        for member in tar:
            assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
            assert member.mode == 0o644


class TestAHostileArchive:
    @pytest.mark.parametrize(
        ("name", "kind", "target"),
        [
            ("top/../../escaped", tarfile.REGTYPE, ""), ("{outside}/escaped", tarfile.REGTYPE, ""),
            ("top/link", tarfile.SYMTYPE, "{outside}"), ("top/link", tarfile.LNKTYPE, "../../escaped"),
            ("top/pipe", tarfile.FIFOTYPE, ""), ("top/device", tarfile.CHRTYPE, ""),
            ("top/folder", tarfile.DIRTYPE, ""),
        ],
    )  # fmt: skip
    def test_writes_nothing_outside_and_is_named(self, tmp_path, name, kind, target):
        outside = tmp_path / "outside"
        outside.mkdir()
        hostile = tarfile.TarInfo(name.format(outside=outside))
        hostile.type, hostile.linkname = kind, target.format(outside=outside)
        through = tarfile.TarInfo("top/link/through")
        through.size = len(ONE)
        with tarfile.open(tmp_path / "hostile.tar.xz", "w:xz") as tar:
            tar.addfile(tarfile.TarInfo("top/fine"))
            tar.addfile(hostile)
            tar.addfile(through, io.BytesIO(ONE))
        (tmp_path / "into").mkdir()
        found = unpack(tmp_path / "hostile.tar.xz", tmp_path / "into")
        assert found.faults == [f"{hostile.name}: no regular file with a plain name; not extracted"]
        assert Counter(path.name for path in tmp_path.iterdir()) == Counter(["outside", "into", "hostile.tar.xz"])
        assert list(outside.iterdir()) == []
        assert failures(tmp_path / "hostile.tar.xz").keys() == {"archive", "manifest"}

    def test_with_files_beside_its_folder_or_twice_is_named(self, tmp_path):
        for names, told in ((("top/a", "beside"), "beside: not below top"), (("top/a", "top/a"), "the order of files")):
            with tarfile.open(tmp_path / "odd.tar.xz", "w:xz") as tar:
                for name in names:
                    tar.addfile(tarfile.TarInfo(name))
            (fault,) = failures(tmp_path / "odd.tar.xz")["archive"]
            assert told in fault


def test_of_a_file_that_changes_meanwhile_is_refused(tmp_path):
    (tmp_path / "grades.jsonl").write_text("{}")
    with pytest.raises(ArchiveError, match=r"grades\.jsonl: changed while it was packed"):
        archive.write(tmp_path / "a.tar.xz", "a", listed(tmp_path), {"grades.jsonl": "0" * 64})
    assert listed(tmp_path).keys() == {"grades.jsonl"}
