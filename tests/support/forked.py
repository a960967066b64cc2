"""Modules run in processes forked from one that has made their imports, which takes longer than what they do."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def forked(module, *arguments, imports, cwd=ROOT, timeout=None):
    """`python -m MODULE ARGUMENTS`, on a server of all tests that has imported `imports`, which are none of ours."""
    command = [sys.executable, "-m", "mcgrpo.launch.preload", module, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MCGRPO_PRELOAD": imports}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout)
