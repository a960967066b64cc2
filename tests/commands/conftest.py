import pytest
from evidence_archives import ARCHIVE, make_study, unpack


@pytest.fixture(scope="session")
def study(made_once):
    """The folder of a small study with its bundle, run once for all tests."""
    return made_once("evidence", make_study)


@pytest.fixture(scope="session")
def packed(study):
    """Its bundle, with completions."""
    return study / ARCHIVE


@pytest.fixture
def content(packed, tmp_path):
    """What is in the bundle, to be changed."""
    return unpack(packed, tmp_path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to run a study in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def printed(here, monkeypatch, capsys):
    """A command's `main` and its arguments -> what it prints, in an empty folder."""

    def printed(main, *arguments):
        monkeypatch.setattr("sys.argv", ["mcgrpo", *map(str, arguments)])
        main()
        return capsys.readouterr().out

    return printed
