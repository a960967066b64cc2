"""Run a module in the environment that it was called with, so that its own jobs find their usual server.

$ python -m as_called ENVIRONMENT PIDFILE MODULE [ARGS...]
"""

import json
import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    _, environment, pid_file, module, *arguments = sys.argv
    if pid_file:
        Path(pid_file).write_text(str(os.getpid()))
    os.environ.clear()
    os.environ.update(json.loads(environment))
    sys.argv = ["-m", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
