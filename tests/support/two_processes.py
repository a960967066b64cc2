"""`python -m two_processes MODULE ARGS`: `torchrun --standalone --nproc-per-node 2 -m MODULE ARGS` by forks.

The agent is torchrun's own. Its two processes are forked from it, and it from a server that has imported torch and TRL
(`mcgrpo.launch.preload`): interpreters that import them take 12 seconds of CPU time each. The agent leaves its process
id in the file AGENT, if that is set.
"""

import os
import runpy
import sys
from pathlib import Path

from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def run(module, *arguments):
    sys.argv = ["-m", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if "AGENT" in os.environ:
        Path(os.environ["AGENT"]).write_text(str(os.getpid()))
    where = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0"}
    config = LaunchConfig(1, 1, 2, run_id="two", start_method="fork", max_restarts=0, **where)
    elastic_launch(config, run)(*sys.argv[1:])
