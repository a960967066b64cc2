"""Start a job on this machine: `python -m mcgrpo.launch --gpus N --processes N MODULE [ARGS...]`.

A job gets GPUs that no other job uses (`mcgrpo.launch.gpus`), or sees none. Several processes are started by torchrun,
also on several machines (`mcgrpo.launch.nodes`); a single one may share its imports with other jobs
(`mcgrpo.launch.preload`). A job may have a vLLM server of its own (`mcgrpo.launch.server`). How a job is started does
not change its results, so the `code` of a rule does not include these modules.
"""

import argparse
import json
import os
import sys
from importlib.util import find_spec
from typing import Any

from mcgrpo import command_line


def command(
    gpus: int, processes: int, job: list[str], nodes: int = 1, server: dict[str, Any] | None = None
) -> list[str]:
    """The command line that starts a job.

    Args:
        gpus, processes: of the job, over all machines.
        job: a module's name and its arguments.
        nodes: machines that they are divided among, and the server's, if that has one of its own.
        server: a `mcgrpo.launch.server.Server` that runs beside it: on more GPUs of one machine, or on the first of
            several.

    Raises:
        ValueError: if several machines cannot be reached.
    """
    python = [sys.executable, "-m"]
    if nodes > 1:
        from mcgrpo.launch.nodes import across  # most jobs last seconds, and need none of this

        skipped = 1 if server else 0
        start, gpus = across(gpus, processes, nodes - skipped, skipped, job), 0  # each machine's are taken there
    elif processes > 1:
        start = [*python, "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "--", *job]
    else:
        start = [*python, "mcgrpo.launch.preload", *job]
    if server:
        start = [*python, "mcgrpo.launch.server", json.dumps({**server, "everywhere": nodes > 1}), *start]
        gpus += server["gpus"]
    return [*python, "mcgrpo.launch.gpus", str(gpus), *start] if gpus else start


def main() -> None:
    """Become the job."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--gpus", type=int, default=0, help="of the job, over all machines")
    parser.add_argument("--processes", type=int, default=1, help="of the job, over all machines; 0 is one, too")
    parser.add_argument("--nodes", type=int, default=1, help="machines of the job, its server's too")
    parser.add_argument("--server", type=json.loads, help="a vLLM server to run beside the job, as JSON")
    parser.add_argument("job", nargs=argparse.REMAINDER, metavar="MODULE [ARGS...]")
    options = parser.parse_args()
    if not options.job:
        parser.error("which module?")
    if options.server and not find_spec("vllm"):
        parser.error("vllm_mode=server: the job starts the server, and vLLM is not installed here")
    if not options.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a job without GPUs computes on the CPU wherever it runs
    alone = options.processes <= 1 and not (options.gpus or options.server)
    if alone:  # without starting Python a second time: most jobs last seconds
        from mcgrpo.launch import preload

        sys.argv = ["mcgrpo.launch.preload", *options.job]
        return preload.main()
    try:
        started = command(options.gpus, options.processes, options.job, options.nodes, options.server)
    except ValueError as error:
        parser.error(str(error))
    os.execvp(started[0], started)


if __name__ == "__main__":
    main()
