"""MLflow as a view of a study's files: nothing waits for it, nothing fails because of it.

A training writes files (`run.json`, `metrics.jsonl`, `system.jsonl`) and never calls MLflow. One process beside it
reads those files every few seconds and logs what is new to the store of MLFLOW_TRACKING_URI. The workflow starts one
such process for all jobs of a study; a training on its own starts one for itself. What is logged live, what a later
`mcgrpo track` adds and what `mcgrpo track --replay` logs from scratch therefore come from one function of the files.

Only the modules of this package import mlflow; a training imports no more than `tracked`.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from mcgrpo.study.paths import SYSTEM
from mcgrpo.tracking.system import sampled

URI = "MLFLOW_TRACKING_URI"
DEFAULT_STORE = "sqlite:///mlflow.db"
MACHINE = "machine"
"""In the folder of an unfinished training: the name of the machine that trains."""
FOLLOWED = "MCGRPO_FOLLOWED"
"""Set for jobs whose files are followed already."""
FOLLOWER_SECONDS = 60
"""How long a training that has ended waits for its follower, which takes seconds unless a server does not answer."""


def warn(what: str, error: BaseException) -> None:
    """Print one line to stderr: what was not tracked, and why."""
    reason = (str(error).splitlines() or [""])[0]
    print(f"warning: {what} was not tracked in MLflow: {type(error).__name__}: {reason}", file=sys.stderr, flush=True)


def follower(*arguments: str | Path) -> subprocess.Popen | None:
    """Start `python -m mcgrpo.tracking.follow`, which ends with this process; None where nothing is tracked."""
    if not os.environ.get(URI) or os.environ.get(FOLLOWED):
        return None
    command = [sys.executable, "-m", "mcgrpo.tracking.follow", "--parent", str(os.getpid()), *map(str, arguments)]
    # In a session of its own: it outlives a killed training long enough to log its end. It needs no GPU.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, env=environment)
    except OSError as error:
        return warn("anything", error)


def use_store(config: Mapping[str, Any]) -> None:
    """Set MLFLOW_TRACKING_URI to the store of a study, if it has one."""
    if store := store_of(config):
        os.environ[URI] = store


def store_of(config: Mapping[str, Any]) -> str:
    """MLFLOW_TRACKING_URI where it is set, else a study's `tracking_uri`; empty for no store."""
    return os.environ.get(URI, config.get("tracking_uri", DEFAULT_STORE)) or ""


def follow_study(results: str) -> None:
    """Start one follower for all of a study's trainings, which then start none of their own."""
    if follower("--results", results):
        os.environ[FOLLOWED] = "1"


@contextmanager
def tracked(unfinished: Path, finished: Path) -> Iterator[None]:
    """Follow one training while the block runs, and wait until its end is logged.

    Args:
        unfinished: folder of the training while it runs.
        finished: folder that its files are moved to when it has finished.
    """
    with suppress(OSError):
        (unfinished / MACHINE).write_text(platform.node())
    process = follower("--unfinished", unfinished, "--finished", finished)
    try:
        with sampled(unfinished / SYSTEM) if os.environ.get(URI) else nullcontext():
            yield
    finally:
        if process:
            try:
                process.wait(FOLLOWER_SECONDS)
            except subprocess.TimeoutExpired as error:
                process.kill()
                warn(f"the end of {finished}", error)
