"""Start a job as the machine wants it: `python -m mcgrpo.launch --gpus N --processes N MODULE [ARGS...]`.

On GPUs that no other job has (`mcgrpo.launch.gpus`), or where it sees none; as several processes (torchrun), or as one
that may share its imports with other jobs (`mcgrpo.launch.preload`). No result depends on it, and so no rule's `code`
does.
"""

import argparse
import os
import sys

from mcgrpo import command_line


def command(gpus: int, processes: int, job: list[str]) -> list[str]:
    """The command line that starts `job`, a module's name and its arguments."""
    python = [sys.executable, "-m"]
    several = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "--"]
    start = [*python, *(several if processes > 1 else ["mcgrpo.launch.preload"]), *job]
    return [*python, "mcgrpo.launch.gpus", str(gpus), *start] if gpus else start


def main() -> None:
    """Become the job."""
    parser = command_line.parser(main.__doc__)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="0 is one, too")
    parser.add_argument("job", nargs=argparse.REMAINDER, metavar="MODULE [ARGS...]")
    options = parser.parse_args()
    if not options.job:
        parser.error("which module?")
    if not options.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a job without GPUs computes on the CPU wherever it runs
    if not options.gpus and options.processes <= 1:  # without starting Python a second time: most jobs last seconds
        from mcgrpo.launch import preload

        sys.argv = ["mcgrpo.launch.preload", *options.job]
        return preload.main()
    started = command(options.gpus, options.processes, options.job)
    os.execv(started[0], started)


if __name__ == "__main__":
    main()
