"""Trainings as processes of their own (`learning_job`), which can be killed at a checkpoint."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import forked
from pretend_machine import PATIENCE_SECONDS
from training_jobs import changed, steps

from mcgrpo.train import attempts

ROOT = Path(__file__).parents[2]
LONG = changed(max_steps=8, num_iterations=2, per_device_train_batch_size=8, lr_scheduler_type="cosine", beta=0.04)
HERE = os.environ | {
    "CUDA_VISIBLE_DEVICES": "",
    "MCGRPO_PRELOAD": forked.server(),
    "PYTHONPATH": os.pathsep.join(sys.path),
    "MCGRPO_ROLLOUT_TABLES": '{"steps": 3, "prompts": 3}',
}
PRELOADED = ("mcgrpo.launch",)
ON_TWO_GPUS = HERE | {"MCGRPO_DEVICES": "a,b"}
TWO_PROCESSES = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--", "preloaded_rank")


def command(made, launcher=PRELOADED):
    """The job as a command line."""
    places = {"model": made.model, "data": made.data, "test": made.test, "output": made.output}
    options = {**places, "weights": made.weights, "unfinished": made.home, "run": json.dumps(asdict(made.run))}
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    flags += ["--gpus", str(made.gpus)]
    flags += ["--save-steps", str(made.save_steps)] if made.save_steps else []
    return [sys.executable, "-m", *launcher, "learning_job", *flags]


def started(made, environment, launcher):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command(made, launcher), env=environment, **quiet)


def held_at(made, step, environment=HERE, launcher=PRELOADED):
    """Start a job; returns its process when it has written the checkpoint of a step, beyond which it generates none."""
    complete = made.checkpoints / f"checkpoint-{step}" / attempts.COMPLETE
    process = started(made, environment | {"HOLD": str(complete)}, launcher)
    while not complete.is_file():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    return process


def killed_at(made, step, environment=HERE, launcher=PRELOADED):
    """Start a job, and SIGKILL it, or torchrun's agent, when it has written the checkpoint of a step."""
    process = held_at(made, step, environment, launcher)
    process.kill()
    process.wait(PATIENCE_SECONDS)
    with attempts.alone(made.home):  # its processes have ended too
        pass


def run(made, environment=HERE, launcher=PRELOADED):
    return subprocess.run(command(made, launcher), env=environment, capture_output=True, text=True)


def finished(made, environment=HERE, launcher=PRELOADED):
    """Run it to its end; returns what it said."""
    done = run(made, environment, launcher)
    assert done.returncode == 0, done.stderr
    return done.stdout


def learned(made):
    """Whether the updates had gradients: of a training without any, all ends are the same."""
    return min(row["grad_norm"] for row in steps(made.output)) > 0


def weights(made):
    return (made.weights / "model.safetensors").read_bytes()


def timeless(rows):
    return [{key: row[key] for key in row if "time" not in key and "seconds" not in key} for row in rows]


def assert_ended_alike(whole, broken):
    """The same weights, metrics and rollouts, to the bit."""
    assert weights(whole) == weights(broken)
    assert timeless(steps(whole.output)) == timeless(steps(broken.output))
    for name in attempts.GROWING[1:]:
        assert (whole.output / name).read_text() == (broken.output / name).read_text()


def assert_resumes_alike(whole, broken, kills, environment=HERE, launcher=PRELOADED):
    """Killed at these checkpoints, it goes on from the last, and ends as the one that was not."""
    for step in kills:
        killed_at(broken, step, environment, launcher)
    said = finished(broken, environment, launcher)
    assert re.search(rf"^going on from \S+/checkpoint-{kills[-1]}$", said, re.MULTILINE), said
    assert_ended_alike(whole, broken)
