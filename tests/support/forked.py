"""Modules run in processes forked from one that has made their imports, which takes longer than what they do."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def forked_command(module, *arguments, imports, pid_file=""):
    """The command line and environment of `python -m MODULE ARGUMENTS` on a server of all tests.

    Args:
        imports: what the server has imported; when a file of the package changes, there is another server.
        pid_file: where to write the process that the module runs in, which leads a group of its own.
    """
    job = ["as_called", json.dumps(dict(os.environ)), str(pid_file), module, *map(str, arguments)]
    path = os.pathsep.join(map(str, (ROOT, Path(__file__).parent)))
    environment = os.environ | {"PYTHONPATH": path, "MCGRPO_PRELOAD": imports}
    return [sys.executable, "-m", "mcgrpo.launch.preload", *job], environment


def forked(module, *arguments, imports, cwd=ROOT, timeout=None):
    """`python -m MODULE ARGUMENTS` on that server, to its end."""
    command, environment = forked_command(module, *arguments, imports=imports)
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout)
