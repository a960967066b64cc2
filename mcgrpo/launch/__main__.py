"""Start a job on this machine: `python -m mcgrpo.launch --gpus N --processes N MODULE [ARGS...]`.

A job locks GPUs that no other job uses (`mcgrpo.launch.gpus`), or sees none. Several processes are started by torchrun;
a training in one process gets a port of its own (`mcgrpo.launch.ports`), and a job without GPUs may share its imports
with others (`mcgrpo.launch.preload`). How a job is started does not change its results, so the `code` of a rule does
not include these modules.
"""

import argparse
import os
from typing import TYPE_CHECKING

from mcgrpo import command_line
from mcgrpo.launch import preload

if TYPE_CHECKING:
    from filelock import FileLock

TRAINING = "mcgrpo.train"
"""The module of jobs that have a process group."""


def main() -> None:
    """Run a job; GPUs are locked by this process until it ends."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--gpus", type=int, default=0, help="of the job")
    parser.add_argument("--processes", type=int, default=1, help="of a job with GPUs")
    parser.add_argument("job", nargs=argparse.REMAINDER, metavar="MODULE [ARGS...]")
    options = parser.parse_args()
    if not options.job:
        parser.error("which module?")
    held = own_port() if options.job[0] == TRAINING and options.processes <= 1 else None
    if options.gpus:
        return on_gpus(options.gpus, options.processes, options.job)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a job without GPUs computes on the CPU wherever it runs
    preload.run(options.job)
    del held  # not before


def own_port() -> "FileLock":
    """Give a training a port, for the process group of a vLLM in its process; returns its lock."""
    from mcgrpo.launch import ports  # most jobs last seconds, and need none of this

    with command_line.errors(ValueError):
        port, lock = ports.take()
    os.environ["MASTER_PORT"] = str(port)
    return lock


def on_gpus(count: int, processes: int, job: list[str]) -> None:
    """Run a job on GPUs; too few end it with one line."""
    from mcgrpo.launch import gpus  # most jobs last seconds, and need none of this

    with command_line.errors(ValueError):
        held = gpus.take(count)
    os.environ.pop(preload.SOCKET, None)
    if processes > 1:
        here = ["--standalone", "--local-addr", "127.0.0.1"]  # not by the machine's name, which may not be resolved
        job = ["torch.distributed.run", *here, "--nproc-per-node", str(processes), "-m", "--", *job]
    preload.run_here(job)
    del held  # not before


if __name__ == "__main__":
    main()
