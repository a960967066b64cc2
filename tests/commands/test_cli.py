import os
import subprocess
import sys
from pathlib import Path

import pytest

import mcgrpo as package
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


@pytest.mark.parametrize("module", ["mcgrpo.launch", "mcgrpo.study.plan"])
def test_a_package_or_module_that_is_called_by_its_name_says_so_in_its_usage(module):
    done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(f"usage: python -m {module} ")


def test_there_is_one_way_to_make_a_parser():
    made = [path.name for path in Path(package.__file__).parent.rglob("*.py") if "ArgumentParser(" in path.read_text()]
    assert made == ["command_line.py"]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_published_claims_are_judged_from_the_repository(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcgrpo", "claims"])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert ["gap-within-1", "fails"] in [line.split() for line in lines]
    assert lines[-1] == "By the paper's own numbers: 14 hold, 13 fail, 12 not measured, 4 not judged."


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


@pytest.mark.slow
def test_a_reader_that_leaves_in_the_middle_ends_doctor_quietly():
    command = f"{sys.executable} -u -m mcgrpo.cli doctor config/mini.yaml | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    line, code = done.stdout.splitlines()
    assert line.startswith("ok") and code == "141" and done.stderr == ""


def test_another_broken_pipe_is_an_error(monkeypatch, capfd):
    def broken(*_, **__):
        raise BrokenPipeError("of a server")

    monkeypatch.setattr("runpy.run_module", broken)
    monkeypatch.setattr(sys, "argv", ["mcgrpo", "claims"])
    with pytest.raises(BrokenPipeError, match="of a server"):
        main()
