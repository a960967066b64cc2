"""MLflow as a view of a study's files: nothing waits for it, nothing fails because of it.

A training writes files (`run.json`, `metrics.jsonl`, `system.jsonl`) and never speaks to a store. One process beside it
follows those files and keeps the store of MLFLOW_TRACKING_URI up to date with them every few seconds: the workflow
starts one for all jobs of a study, a training on its own starts one for itself. So what is live, what a later
`mcgrpo track` mends and what `mcgrpo track --replay` makes from nothing is one and the same function of the files.

Only this package imports mlflow, and none of it is imported here: a training needs but `tracked`.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from mcgrpo.tracking.system import sampled

URI = "MLFLOW_TRACKING_URI"
DEFAULT_STORE = "sqlite:///mlflow.db"
MACHINE = "machine"
"""In the folder of an unfinished training: the name of the machine that trains."""
FOLLOWED = "MCGRPO_FOLLOWED"
"""Set for jobs whose files a process follows already."""
PATIENCE_SECONDS = 60
"""How long a training that has ended waits for its follower, which takes seconds unless a server does not answer."""


def warn(doing: str, error: BaseException) -> None:
    """One line on stderr: what was not tracked, and why."""
    reason = (str(error).splitlines() or [""])[0]
    print(f"warning: {doing} was not tracked in MLflow: {type(error).__name__}: {reason}", file=sys.stderr, flush=True)


def follower(*arguments: str | Path) -> subprocess.Popen | None:
    """Start a process that follows files until its parent has ended; None where nothing is tracked.

    Args:
        arguments: of `python -m mcgrpo.tracking.follow`.
    """
    if not os.environ.get(URI) or os.environ.get(FOLLOWED):
        return None
    command = [sys.executable, "-m", "mcgrpo.tracking.follow", "--parent", str(os.getpid()), *map(str, arguments)]
    # In a session of its own, so that what kills the training leaves it time to say so; it has no use for a GPU.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, env=environment)
    except OSError as error:
        return warn("anything", error)


def use_store(config: Mapping[str, Any]) -> None:
    """Set MLFLOW_TRACKING_URI to a study's `tracking_uri`, unless it is set; null or empty means no store."""
    if store := config.get("tracking_uri", DEFAULT_STORE):
        os.environ.setdefault(URI, store)


def follow_study(results: str) -> None:
    """Start the process that brings all of a study's trainings into the store; they then start none of their own."""
    if follower("--results", results):
        os.environ[FOLLOWED] = "1"


@contextmanager
def tracked(unfinished: Path, finished: Path) -> Iterator[None]:
    """Follow one training while the block runs, and see its end into the store.

    Args:
        unfinished: the folder of the training, in which `run.json` says that it runs.
        finished: the folder that has its files when it is finished.
    """
    with suppress(OSError):
        (unfinished / MACHINE).write_text(platform.node())
    process = follower("--unfinished", unfinished, "--finished", finished)
    try:
        with sampled(unfinished / "system.jsonl") if os.environ.get(URI) else nullcontext():
            yield
    finally:
        if process:
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired as error:
                process.kill()
                warn(f"the end of {finished}", error)
