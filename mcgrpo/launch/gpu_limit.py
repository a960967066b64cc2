"""GPUs that a study's jobs take, against those that Snakemake may use and those that this machine has.

Snakemake lowers what a job asks for to what it was given, and would start it on fewer GPUs, or on none.
"""

from collections.abc import Iterable

from mcgrpo.launch.gpus import DeviceError, check_lock_folder, devices, enough


def limit(training: int, evaluation: int, given: int | None, *, on_cluster: bool) -> int | None:
    """The GPUs that Snakemake may use: those given, else as many as this machine has, unless jobs run elsewhere.

    Args:
        training, evaluation: GPUs of one job.
        given: by `--resources gpu=N`.

    Returns:
        None where it need not be limited; also where this machine has too few for any job, which a dry run may plan.

    Raises:
        DeviceError: if fewer are given than a job takes.
    """
    jobs = {f"a training (gpus: {training})": training}
    jobs[f"an evaluation (vllm_tensor_parallel_size: {evaluation})"] = evaluation
    if given is None:
        here = 0 if on_cluster or not max(jobs.values()) else _here()
        return here if here >= max(jobs.values()) > 0 else None
    for words, takes in jobs.items():
        if takes > given:
            unit = "GPU" if takes == 1 else "GPUs"
            raise DeviceError(f"{words} takes {takes} {unit}, and --resources gpu={given} allows {given}")
    return given


def _here() -> int:
    try:
        return len(devices())
    except DeviceError:
        return 0


def check_machine(wanted: Iterable[int]) -> None:
    """Refuse jobs that want more GPUs than there are, or could take none.

    Raises:
        DeviceError: naming those that there are; or what is wrong with the folder of their locks.
    """
    if most := max(wanted, default=0):
        enough(most, devices())
        check_lock_folder()
