"""Archives of files that were never a study: what is written, and what is not unpacked."""

import io
import lzma
import tarfile

import pytest

from mcgrpo.commands.evidence.archive import ArchiveError, unpack, write


def hostile(path, *members):
    with lzma.open(path, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, target, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_what_is_written_is_unpacked(tmp_path):
    names = {"a": b"1", "b/c.txt": b"", "long" * 60: b"x", "b/übung": "ü".encode()}
    files = {name: tmp_path / "in" / name for name in names}
    for name, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(names[name])
    write(tmp_path / "a.tar.xz", "top", files)
    unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    found = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in found} == names


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        *((name, tarfile.REGTYPE, "") for name in ("top/../out.txt", "top/../../out.txt", "//../out.txt", "alone")),
        ("top/link", tarfile.SYMTYPE, "/etc/passwd"), ("top/link", tarfile.LNKTYPE, "top/a"),
        *(("top/odd", kind, "") for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE)),
    ],
)  # fmt: skip
def test_a_member_that_is_no_file_below_the_folder_is_refused_by_name(tmp_path, name, kind, target):
    path = hostile(tmp_path / "a.tar.xz", ("top/a", tarfile.REGTYPE, "", b"1"), (name, kind, target, b""))
    with pytest.raises(ArchiveError, match=name.split("/", 1)[-1]):
        unpack(path, tmp_path / "inner/out")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a", "a.tar.xz", "inner", "out"]


def test_more_files_than_allowed_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mcgrpo.commands.evidence.archive.MOST_FILES", 1)
    members = ((f"top/{name}", tarfile.REGTYPE, "", b"") for name in "ab")
    with pytest.raises(ArchiveError, match="more than 1 files"):
        unpack(hostile(tmp_path / "a.tar.xz", *members), tmp_path / "out")


def test_more_bytes_than_allowed_are_refused_while_they_come(tmp_path):
    path = hostile(tmp_path / "bomb.tar.xz", ("top/zeros", tarfile.REGTYPE, "", bytes(8 << 20)))
    assert path.stat().st_size < 10_000
    with pytest.raises(ArchiveError, match=r"more than 4 MiB \(--max-mb\)"):
        unpack(path, tmp_path / "out", most_mb=4)
    assert (tmp_path / "out/zeros").stat().st_size <= 4 << 20


def plain(path, *members):
    """The members as regular files, each with its content."""
    return hostile(path, *((name, tarfile.REGTYPE, "", content) for name, content in members))


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([("top/a", b"false"), ("z/a", b"true")], "'z/a' is not in the folder 'top'"),
        ([("top/a", b"1"), ("z/b", b"2")], "'z/b' is not in the folder 'top'"),
        ([("top/a", b"false"), ("top/a", b"true")], "'top/a' comes twice"),
        *(([("top/b/c", b""), ("top/a", b"false"), (name, b"true")], f"{name!r} is not a regular file in a folder")
          for name in ("top/./a", "top//a", "top/b/../a", "./a", "../a", "/a")),
    ],
)  # fmt: skip
def test_what_tar_would_show_is_what_is_unpacked(tmp_path, members, told):
    """`tar -x` keeps a second top folder apart, and shows the last of two files of one name."""
    with pytest.raises(ArchiveError) as caught:
        unpack(plain(tmp_path / "a.tar.xz", *members), tmp_path / "out")
    assert str(caught.value) == told


class TestAfterTheEnd:
    @pytest.fixture
    def whole(self, tmp_path):
        path = tmp_path / "a.tar.xz"
        write(path, "top", {"a": plain(tmp_path / "content", ("top/b", b"2"))})
        return path

    @pytest.mark.parametrize(
        "more", [b"x", b"\0\0\0\0x", "the archive again", lzma.compress(b"no tar"), lzma.compress(b"")]
    )
    def test_nothing_but_zeros_may_follow_the_stream(self, whole, tmp_path, more):
        with whole.open("ab") as file:
            file.write(whole.read_bytes() if isinstance(more, str) else more)
        with pytest.raises(ArchiveError, match="bytes after its end"):
            unpack(whole, tmp_path / "out")

    def test_nothing_but_zeros_may_follow_the_tar(self, whole, tmp_path):
        tar = lzma.decompress(whole.read_bytes())
        for more in (b"x", tar, b"\0" * 50_000 + b"x"):
            whole.write_bytes(lzma.compress(tar + more))
            with pytest.raises(ArchiveError, match="bytes after its end"):
                unpack(whole, tmp_path / f"out-{len(more)}")

    def test_zeros_may(self, whole, tmp_path):
        tar = lzma.decompress(whole.read_bytes())
        whole.write_bytes(lzma.compress(tar + bytes(50_000)) + bytes(400_000))
        unpack(whole, tmp_path / "out")
        assert (tmp_path / "out/a").is_file()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-40], lambda data: b"no xz", lambda data: data[:200] + b"!!" + data[202:]]
)
def test_a_damaged_stream_is_one_error(tmp_path, damage):
    path = hostile(tmp_path / "a.tar.xz", *((f"top/{n}", tarfile.REGTYPE, "", bytes(range(256)) * 8) for n in range(9)))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ArchiveError, match="or damaged"):
        unpack(path, tmp_path / "out")
