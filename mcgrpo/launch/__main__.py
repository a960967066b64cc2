"""Start a job on this machine: `python -m mcgrpo.launch --gpus N --processes N MODULE [ARGS...]`.

A job locks GPUs that no other job uses (`mcgrpo.launch.gpus`), or sees none. Several processes are started by torchrun,
also on several machines (`mcgrpo.launch.nodes`); a single one may share its imports with other jobs
(`mcgrpo.launch.preload`). A job may have a vLLM server of its own (`mcgrpo.launch.server`). How a job is started does
not change its results, so the `code` of a rule does not include these modules.
"""

import argparse
import json
import os
from importlib.util import find_spec

from mcgrpo import command_line
from mcgrpo.launch import preload


def main() -> None:
    """Run a job; GPUs are locked by this process until it ends."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--gpus", type=int, default=0, help="of the job, over all machines")
    parser.add_argument("--processes", type=int, default=1, help="of the job, over all machines; 0 is one, too")
    parser.add_argument("--nodes", type=int, default=1, help="machines of the job")
    parser.add_argument("--server", type=json.loads, help="a vLLM server to run beside the job, as JSON")
    parser.add_argument("--part-of", type=int, metavar="N", help="this is the part of one of N machines")
    parser.add_argument("job", nargs=argparse.REMAINDER, metavar="MODULE [ARGS...]")
    options = parser.parse_args()
    if not options.job:
        parser.error("which module?")
    if options.server and not find_spec("vllm"):
        parser.error("vllm_mode=server: the job starts the server, and vLLM is not installed here")
    if not options.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a job without GPUs computes on the CPU wherever it runs
        if not options.server and not options.part_of:
            return preload.run(options.job)
    on_gpus(options)


def on_gpus(options: argparse.Namespace) -> None:
    """Run a job on GPUs; too few, or several machines that cannot be reached, end it with one line."""
    from mcgrpo.launch import gpus, nodes, server  # most jobs last seconds, and need none of this

    with command_line.errors(ValueError):
        if options.nodes > 1:
            machines = nodes.across(options.gpus, options.processes, options.nodes, options.job)
            os.execvp(machines[0], machines)
        here = options.gpus + (options.server.get("gpus", 1) if options.server else 0)
        held = gpus.take(here) if here else []
    beside = server.start(**options.server) if options.server else None
    os.environ.pop(preload.SOCKET, None)
    if options.part_of or options.processes > 1:
        where = nodes.meeting(options.part_of) if options.part_of else ["--standalone"]
        torchrun = ["torch.distributed.run", *where, "--nproc-per-node", str(options.processes), "-m", "--"]
        options.job = [*torchrun, *options.job]
    preload.run(options.job)
    del held, beside  # not before


if __name__ == "__main__":
    main()
