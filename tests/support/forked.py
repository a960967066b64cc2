"""Modules run in processes forked from one that has made their imports, which takes longer than what they do."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcgrpo.launch import preload

ROOT = Path(__file__).parents[2]


@functools.cache
def server(imports=preload.IMPORTS):
    """The socket of a server of all tests of this process; it imports when it is first used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{Path(__file__).parent}", prepend=os.pathsep)
        return preload.start(imports)


def forked_command(module, *arguments, imports, pid_file=""):
    """The command line and environment of `python -m MODULE ARGUMENTS` on a server of all tests.

    Args:
        imports: what the server has imported; the module's own jobs have one that has imported what trainings need.
        pid_file: where to write the process that the module runs in, which leads a group of its own.
    """
    environment = dict(os.environ) | {preload.SOCKET: server()}
    job = ["as_called", json.dumps(environment), str(pid_file), module, *map(str, arguments)]
    return [sys.executable, "-m", "mcgrpo.launch", *job], environment | {preload.SOCKET: server(imports)}


def forked(module, *arguments, imports, cwd=ROOT):
    """`python -m MODULE ARGUMENTS` on that server, to its end."""
    command, environment = forked_command(module, *arguments, imports=imports)
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)
