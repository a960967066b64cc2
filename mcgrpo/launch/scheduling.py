"""What Snakemake's scheduler does between the jobs of one machine."""

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
