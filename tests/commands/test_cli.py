import os
import subprocess
import sys

import pytest

from mcgrpo.cli import COMMANDS, main


def mcgrpo(*arguments):
    return subprocess.run([sys.executable, "-m", "mcgrpo.cli", *arguments], capture_output=True, text=True)


def test_help_names_every_command():
    for arguments in ([], ["--help"]):
        done = mcgrpo(*arguments)
        assert done.returncode == 0
        assert all(name in done.stdout for name in COMMANDS)


def test_an_unknown_command_is_named():
    done = mcgrpo("claim")
    assert done.returncode == 1 and done.stderr.startswith("mcgrpo: no command 'claim'\n")


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_its_module(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcgrpo", name, "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code and f"usage: mcgrpo {name}" in capsys.readouterr().out


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["--help"], pytest.param(["claims"], marks=pytest.mark.slow)])
def test_a_reader_that_leaves_ends_a_command_quietly(arguments, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "mcgrpo.cli", *arguments]
    with os.fdopen(writing, "w") as broken:
        done = subprocess.run(command, stdout=broken, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (141, "")


def test_another_broken_pipe_is_an_error(monkeypatch, capfd):
    def broken(*_, **__):
        raise BrokenPipeError("of a server")

    monkeypatch.setattr("runpy.run_module", broken)
    monkeypatch.setattr(sys, "argv", ["mcgrpo", "claims"])
    with pytest.raises(BrokenPipeError, match="of a server"):
        main()
