"""What Snakemake's scheduler does between jobs, and when it is told to end."""

from typing import Any


def without_rate_limit(workflow: Any) -> None:
    """Lift Snakemake's limit of 100 jobs per second, for `onstart`; that of a cluster stays.

    With a limit, every pass of the scheduler over the ready jobs asks for another pass a second later. As long as some
    job is ready, none of these ends, and each job that finishes adds one: after hundreds of jobs the passes take more
    than a core. `--max-jobs-per-timespan` cannot be empty.

    Args:
        workflow: Snakemake's, as Snakefiles see it.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def without_deadlock() -> None:
    """Let SIGTERM end a Snakemake that is handling a failed job, such as that of a cancelled SLURM job.

    The handler of Snakemake 9.27 takes a lock that the thread it interrupts may hold, and waits forever. To set an
    attribute needs none.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    def exit_gracefully(self: JobScheduler, *_: Any) -> None:
        self._user_kill = "graceful"
        self._open_jobs.release()

    JobScheduler.exit_gracefully = exit_gracefully
