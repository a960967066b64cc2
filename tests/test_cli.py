import subprocess
import sys

import pytest

from mcgrpo.cli import COMMANDS


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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_its_module(name):
    done = mcgrpo(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"usage: mcgrpo {name}" in done.stdout


def test_the_published_claims_are_judged_from_the_repository():
    done = mcgrpo("claims")
    assert done.returncode == 0, done.stderr
    verdicts = dict(line.split("published:") for line in done.stdout.splitlines())
    assert {name.strip(): verdict.strip() for name, verdict in verdicts.items()}["gap-within-1"] == "fails"
