"""One training on several machines, by torchrun's c10d rendezvous.

    python -m mcgrpo.launch.nodes GPUS PROCESSES NODES MODULE [ARGS...]    becomes the torchrun of one of NODES machines

Within a SLURM job, srun starts it once on every machine, and they meet on the first one. Elsewhere whoever starts it on
every machine names the meeting point, as torchrun's own variables do: PET_RDZV_ENDPOINT=HOST:PORT, and PET_RDZV_ID if
several trainings meet there.
"""

import os
import subprocess
import sys

from mcgrpo.launch.parents import HOLDER

ENDPOINT = "PET_RDZV_ENDPOINT"
JOB = "SLURM_JOB_ID"
PORTS = range(20000, 30000)
"""Of the meeting points: which one follows from the job's number."""


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


def across(gpus: int, processes: int, nodes: int, skipped: int, job: list[str]) -> list[str]:
    """The command line that starts this machine's part of a job, or in a SLURM job those of all machines.

    Args:
        gpus, processes: of the whole job.
        nodes: machines that they are divided among.
        skipped: machines at the head of SLURM's list that have no part in it.
        job: a module's name and its arguments.

    Raises:
        ValueError: see `check`; or if machines are skipped where there is no list of them.
    """
    check(nodes)
    own = [sys.executable, "-m", "mcgrpo.launch.nodes", str(gpus // nodes), str(processes // nodes), str(nodes), *job]
    if ENDPOINT in os.environ:
        if skipped:
            raise ValueError(f"{ENDPOINT} is set: start the vLLM server, too, and name it (vllm_server_base_url)")
        return own
    # A process that fails ends all; SLURM would bind each machine's processes to one core together.
    options = ["--kill-on-bad-exit=1", "--cpu-bind=none", f"--nodes={nodes}", f"--ntasks={nodes}"]
    return ["srun", *options, *([f"--relative={skipped}"] if skipped else []), *own]


def meeting() -> list[str]:
    """torchrun's options for where this machine meets the others."""
    if endpoint := os.environ.get(ENDPOINT):
        return ["--rdzv-endpoint", endpoint, "--rdzv-id", os.environ.get("PET_RDZV_ID", "mcgrpo")]
    show = ["scontrol", "show", "hostnames", os.environ["SLURM_STEP_NODELIST"]]
    first = subprocess.run(show, capture_output=True, text=True, check=True).stdout.split()[0]
    endpoint = f"{first}:{PORTS[int(os.environ[JOB]) % len(PORTS)]}"
    # torchrun would find out by names, and SLURM's need not be those of the machines.
    host = f"is_host={int(os.environ['SLURM_NODEID'] == '0')}"
    return ["--rdzv-endpoint", endpoint, "--rdzv-id", os.environ[JOB], "--rdzv-conf", host]


def agent(gpus: int, processes: int, nodes: int, job: list[str]) -> list[str]:
    """The command line of this machine's torchrun."""
    start = [sys.executable, "-m", "torch.distributed.run", "--nnodes", str(nodes), "--nproc-per-node", str(processes)]
    start += ["--rdzv-backend", "c10d", *meeting(), "-m", "--", *job]
    return [sys.executable, "-m", "mcgrpo.launch.gpus", str(gpus), *start] if gpus else start


def main() -> None:
    """Become this machine's torchrun."""
    gpus, processes, nodes = map(int, sys.argv[1:4])
    os.environ.pop(HOLDER, None)  # srun passes it on from another machine
    command = agent(gpus, processes, nodes, sys.argv[4:])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
