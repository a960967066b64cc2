import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcgrpo.launch.locks import lock_of
from mcgrpo.launch.private import private_folder, session_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setattr("mcgrpo.launch.private.TEMPORARY", str(tmp_path))
    return tmp_path / f"mcgrpo-{os.getuid()}"


def test_a_released_lock_leaves_no_file(home):
    for number in range(3):
        with lock_of(f"study {number}"):
            assert len(list(home.iterdir())) == 1
    assert not list(home.iterdir())


ADDS = """
import sys, time
from pathlib import Path
from mcgrpo.launch.locks import lock_of
counter = Path(sys.argv[1])
for _ in range(100):
    with lock_of("a counter"):
        value = int(counter.read_text())
        time.sleep(0.0002)
        counter.write_text(str(value + 1))
"""


@pytest.mark.slow
def test_processes_that_wait_for_a_lock_whose_file_goes_hold_it_one_at_a_time(tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", ADDS, str(counter)]
    processes = [subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert counter.read_text() == "400"


def test_a_private_folder_that_is_a_link_or_open_to_others_is_refused(home, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match=f"{home} is not a private directory"):
        private_folder(str(tmp_path))
    (tmp_path / "elsewhere").rmdir()
    with pytest.raises(PermissionError, match="remove it"):
        lock_of("anything")
    home.unlink()
    home.mkdir()
    home.chmod(0o755)
    with pytest.raises(PermissionError):
        lock_of("anything")


@pytest.mark.skipif(os.getuid() != 0, reason="giving a folder to another user needs root")
def test_a_private_folder_that_is_another_users_is_refused(home, tmp_path):
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    with pytest.raises(PermissionError):
        private_folder(str(tmp_path))


def test_a_runtime_folder_that_is_not_there_is_passed_over(home, tmp_path, monkeypatch):
    """As `sbatch --export=ALL` carries it to a node where the user is not logged in."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/99999")
    monkeypatch.delenv("TMPDIR", raising=False)
    assert session_folder() == home
    (other := tmp_path / "jobs").mkdir()
    monkeypatch.setenv("TMPDIR", str(other))
    assert session_folder().parent == other
    monkeypatch.setenv("XDG_RUNTIME_DIR", sys.executable)  # no folder, though it may be executed
    assert session_folder().parent == other


def test_a_lock_is_the_same_whatever_the_environment(tmp_path, monkeypatch):
    """A login shell and a job of one user, which have other folders for temporary files."""
    one = lock_of("a server").lock_file
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert lock_of("a server").lock_file == one
