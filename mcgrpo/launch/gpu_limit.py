"""Checks the GPUs that a job takes against those that Snakemake may use and those of this machine.

Without them Snakemake would lower a job's GPUs to the limit, and start it with fewer, or with none.
"""

from collections.abc import Iterable

from mcgrpo.launch.devices import DeviceError, count, devices
from mcgrpo.launch.gpus import check_lock_folder, enough


def limit(training: int, server: int, evaluation: int, given: int | None, *, on_cluster: bool) -> int | None:
    """The GPUs that Snakemake may use: as many as given, else those of this machine, unless jobs run on a cluster.

    Args:
        training, evaluation: GPUs of one job.
        server: those of the vLLM server that a training's job starts.
        given: by `--resources gpu=N`.

    Returns:
        None for no limit; also if this machine has too few for a job, so that a dry run can plan it.

    Raises:
        DeviceError: if fewer are given than a job takes.
    """
    beside = f", with a vLLM server on {server}" if server else ""
    jobs = {f"a training (gpus: {training}{beside})": training + server}
    jobs[f"an evaluation (vllm_tensor_parallel_size: {evaluation})"] = evaluation
    if given is None:
        here = 0 if on_cluster or not max(jobs.values()) else count()
        return here if here >= max(jobs.values()) > 0 else None
    for words, takes in jobs.items():
        if takes > given:
            unit = "GPU" if takes == 1 else "GPUs"
            raise DeviceError(f"{words} takes {takes} {unit}, and --resources gpu={given} allows {given}")
    return given


def check_machine(wanted: Iterable[int]) -> None:
    """Check that this machine has the GPUs that its jobs want, and a usable folder for their locks.

    Raises:
        DeviceError: naming the GPUs of this machine, or the fault of the folder.
    """
    if most := max(wanted, default=0):
        enough(most, devices())
        check_lock_folder()
