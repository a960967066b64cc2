"""One training on several machines: torchrun's c10d rendezvous, in a SLURM job or at a meeting point.

In a SLURM job, srun starts `mcgrpo.launch --part-of NODES` on every machine, and they meet on the first one. Elsewhere
the job is started on each with torchrun's variable PET_RDZV_ENDPOINT=HOST:PORT, and PET_RDZV_ID if several trainings
meet there.
"""

import os
import subprocess
import sys

ENDPOINT = "PET_RDZV_ENDPOINT"
JOB = "SLURM_JOB_ID"
FIRST_PORT = 20000


def check(nodes: int) -> None:
    """Check that a training on `nodes` machines can reach them.

    Raises:
        ValueError: if neither SLURM nor a meeting point is there.
    """
    if nodes > 1 and not os.environ.keys() & {ENDPOINT, JOB}:
        raise ValueError(
            f"nodes={nodes} machines train together in a SLURM job (workflow/profiles/slurm), or where each is told "
            f"to meet at {ENDPOINT}=HOST:PORT: neither {JOB} nor {ENDPOINT} is set"
        )


def across(count: int, processes: int, nodes: int, job: list[str]) -> list[str]:
    """The command line that starts this machine's part of a job, or in a SLURM job those of all machines.

    Args:
        count, processes: GPUs and processes of the whole job.
        nodes: machines that they are divided among.
        job: a module's name and its arguments.

    Raises:
        ValueError: see `check`.
    """
    check(nodes)
    shares = ["--gpus", str(count // nodes), "--processes", str(processes // nodes), "--part-of", str(nodes)]
    own = [sys.executable, "-m", "mcgrpo.launch", *shares, *job]
    if ENDPOINT in os.environ:
        return own
    # A process that fails ends all; SLURM would bind each machine's processes to one core together.
    return ["srun", "--kill-on-bad-exit=1", "--cpu-bind=none", f"--nodes={nodes}", f"--ntasks={nodes}", *own]


def meeting(nodes: int) -> list[str]:
    """torchrun's options for where this machine meets the others."""
    where = ["--nnodes", str(nodes), "--rdzv-backend", "c10d"]
    if endpoint := os.environ.get(ENDPOINT):
        return [*where, "--rdzv-endpoint", endpoint, "--rdzv-id", os.environ.get("PET_RDZV_ID", "mcgrpo")]
    show = ["scontrol", "show", "hostnames", os.environ["SLURM_STEP_NODELIST"]]
    first = subprocess.run(show, capture_output=True, text=True, check=True).stdout.split()[0]
    endpoint = f"{first}:{FIRST_PORT + int(os.environ[JOB]) % 10000}"
    # torchrun would find out by names, and SLURM's need not be those of the machines.
    host = f"is_host={int(os.environ['SLURM_NODEID'] == '0')}"
    return [*where, "--rdzv-endpoint", endpoint, "--rdzv-id", os.environ[JOB], "--rdzv-conf", host]
