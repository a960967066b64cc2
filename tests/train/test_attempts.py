"""Trainings that end before their time, as processes of their own; and those that go on from there."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from training_jobs import RUN, changed, job, make_inputs, outcome, steps

from mcgrpo.train import attempts
from mcgrpo.train.job import identity, run_job

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LONG = changed(max_steps=8, num_iterations=2, per_device_train_batch_size=8, lr_scheduler_type="cosine", beta=0.04)
BEST = replace(LONG, training=LONG.training | {"select_checkpoint": "best-on-test", "eval_steps": 2})


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return make_inputs(tmp_path_factory.mktemp("inputs"))


HERE = os.environ | {"PYTHONPATH": str(ROOT / "tests/support")}
PRELOADED = ("mcgrpo.launch.preload",)
TWO_PROCESSES = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--")


def command(made, launcher=PRELOADED):
    """The job as a command line."""
    places = {"model": made.model, "data": made.data, "test": made.test, "output": made.output}
    options = {**places, "weights": made.weights, "unfinished": made.home, "run": json.dumps(asdict(made.run))}
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return [sys.executable, "-m", *launcher, "learning_job", *flags, "--save-steps", str(made.save_steps)]


def killed_at(made, step, environment=None, launcher=PRELOADED):
    """Start a job and SIGKILL it as soon as it has written the checkpoint of a step."""
    complete = made.checkpoints / f"checkpoint-{step}" / attempts.COMPLETE
    process = subprocess.Popen(
        command(made, launcher), env=environment or HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not complete.is_file():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    process.kill()
    process.wait()


def run(made, environment=None, launcher=PRELOADED):
    return subprocess.run(command(made, launcher), env=environment or HERE, capture_output=True, text=True)


def learned(made):
    """Whether the updates had gradients: of a training without any, all ends are the same."""
    return min(row["grad_norm"] for row in steps(made.output)) > 0


def timeless(rows):
    return [{key: row[key] for key in row if "time" not in key and "seconds" not in key} for row in rows]


@pytest.mark.parametrize("trained", [LONG, BEST], ids=["last", "best-on-test"])
def test_a_killed_training_ends_as_an_uninterrupted_one(inputs, tmp_path, trained):
    """Twice killed: the same weights and metrics to the bit, in the same MLflow run."""
    environment = HERE | {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}
    whole, broken = (job(inputs, tmp_path / name, trained, save_steps=2) for name in ("whole", "broken"))
    assert run(whole).returncode == 0 and learned(whole)
    for step in (2, 6):
        killed_at(broken, step, environment)
    kept = steps(broken.home)
    assert outcome(broken.home)["status"] == "running" and len(kept) >= 6
    done = run(broken, environment)
    assert done.returncode == 0, done.stderr
    assert "going on from" in done.stdout and "checkpoint-6" in done.stdout
    assert timeless(steps(broken.output)) == timeless(steps(whole.output))
    assert steps(broken.output)[:6] == kept[:6]
    ends = [(made.weights / "model.safetensors").read_bytes() for made in (whole, broken)]
    assert ends[0] == ends[1] and not broken.home.exists()
    assert outcome(broken.output)["seconds"] < time.time() - outcome(broken.output)["started"]
    (tracked,) = MlflowClient(environment["MLFLOW_TRACKING_URI"]).search_runs(["1"])
    history = MlflowClient(environment["MLFLOW_TRACKING_URI"]).get_metric_history(tracked.info.run_id, "loss")
    assert [metric.step for metric in history] == list(range(1, 9)) and tracked.info.status == "FINISHED"


def test_two_killed_processes_end_as_uninterrupted_ones(inputs, tmp_path):
    """torchrun is killed, and takes its processes along; a LoRA training has checkpoints of its adapters only."""
    trained = replace(LONG, training=LONG.training | {"lora": {"r": 4, "target_modules": "all-linear"}})
    whole, broken = (job(inputs, tmp_path / name, trained, save_steps=2) for name in ("whole", "broken"))
    assert run(whole, launcher=TWO_PROCESSES).returncode == 0 and learned(whole)
    killed_at(broken, 4, launcher=TWO_PROCESSES)
    done = run(broken, launcher=TWO_PROCESSES)
    assert done.returncode == 0, done.stderr
    assert "going on from" in done.stdout
    assert timeless(steps(broken.output)) == timeless(steps(whole.output))
    ends = [(made.weights / "model.safetensors").read_bytes() for made in (whole, broken)]
    assert ends[0] == ends[1]


def test_another_training_does_not_go_on_from_it(inputs, tmp_path):
    made = job(inputs, tmp_path, LONG, save_steps=2)
    killed_at(made, 2)
    other = replace(made, run=replace(LONG, seed=LONG.seed + 1))
    done = run(other)
    assert f"starting again: run changed since {made.home} was written" in done.stdout
    assert "going on" not in done.stdout and len(steps(made.output)) == 8


def test_a_checkpoint_that_was_not_written_to_its_end_is_passed_over(inputs, tmp_path):
    made = job(inputs, tmp_path, LONG, save_steps=2)
    killed_at(made, 4)
    (made.checkpoints / "checkpoint-4" / attempts.COMPLETE).unlink()
    assert attempts.last_checkpoint(made.checkpoints) in (None, made.checkpoints / "checkpoint-2")


def test_a_later_checkpoint_that_is_not_whole_does_not_outlive_those_to_come(inputs, tmp_path):
    """Killed while it wrote that of step 6, and called again with checkpoints at other steps."""
    made = job(inputs, tmp_path, LONG, save_steps=2)
    killed_at(made, 4)
    unfinished = made.checkpoints / "checkpoint-6"
    unfinished.mkdir(exist_ok=True)
    (unfinished / attempts.COMPLETE).unlink(missing_ok=True)
    killed_at(replace(made, save_steps=5), 5)
    assert attempts.last_checkpoint(made.checkpoints).name == "checkpoint-5" and not unfinished.exists()


def test_a_training_that_was_killed_while_it_was_cleared_away_starts_afresh(inputs, tmp_path, monkeypatch):
    made = job(inputs, tmp_path, LONG, save_steps=2)
    killed_at(made, 4)

    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(attempts.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        attempts.clear(made.home)
    monkeypatch.undo()
    assert attempts.begin(made.home, {}) == attempts.Earlier() and not made.checkpoints.exists()


def test_what_says_only_how_rollouts_are_drawn_does_not_start_it_afresh(inputs, tmp_path):
    made = job(inputs, tmp_path, changed(vllm_gpu_memory_utilization=0.3))
    assert identity(made) == identity(replace(made, run=changed(vllm_gpu_memory_utilization=0.2)))
    assert identity(made) != identity(replace(made, run=changed(learning_rate=1.0)))
    assert identity(made) != identity(replace(made, gpus=1))


def test_two_processes_never_train_one_run(inputs, tmp_path, monkeypatch):
    made = job(inputs, tmp_path, LONG)
    with attempts.alone(made.home), pytest.raises(TimeoutError):
        monkeypatch.setattr(attempts, "PATIENCE_SECONDS", 0.1)
        run_job(made)


def test_a_loss_that_is_no_number_stops_the_training(inputs, tmp_path):
    made = job(inputs, tmp_path, replace(LONG, training=LONG.training | {"learning_rate": 1e38}), save_steps=1)
    done = run(made)
    assert done.returncode != 0
    assert f"error: {RUN.name}: " in done.stderr and "at step" in done.stderr and "is nan" in done.stderr
    assert f"kept: {made.home}/metrics.jsonl" in done.stderr
    assert outcome(made.home)["status"] == "failed" and "FloatingPointError" in outcome(made.home)["error"]
    assert not made.output.exists() and not made.weights.exists()


def test_a_reward_that_raises_fails_the_run_with_its_words(inputs, tmp_path, monkeypatch):
    calls = []

    def reward(completions, **kwargs):
        calls.append(1)
        if len(calls) > 2:
            raise ZeroDivisionError("no points to share out")
        return [float(len(completion) % 3) for completion in completions]

    monkeypatch.setattr("mcgrpo.grade.rewards.reward_functions", lambda task, names: [reward])
    made = job(inputs, tmp_path, changed(max_steps=8), save_steps=1)
    with pytest.raises(ZeroDivisionError):
        run_job(made)
    assert outcome(made.home)["error"] == "ZeroDivisionError: no points to share out"
    assert [row["step"] for row in steps(made.home)] == [1, 2]
    assert attempts.last_checkpoint(made.checkpoints).name == "checkpoint-2"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_is_named(inputs, small_disk):
    made = job(inputs, small_disk, LONG, save_steps=1)
    (small_disk / "filler").write_bytes(bytes(2_000_000 - 350_000))
    done = run(made)
    assert done.returncode != 0
    assert f"the disk of {made.home} is full" in done.stderr
    assert steps(made.home) and not made.output.exists()
    (small_disk / "filler").unlink()
    done = run(made)
    assert done.returncode == 0, done.stderr
    assert len(steps(made.output)) == 8


def test_ctrl_c_leaves_a_training_to_go_on_with(inputs, tmp_path):
    made = job(inputs, tmp_path, LONG, save_steps=2)
    process = subprocess.Popen(command(made), env=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (made.checkpoints / "checkpoint-2" / attempts.COMPLETE).is_file():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    assert outcome(made.home)["status"] == "failed" and "KeyboardInterrupt" in outcome(made.home)["error"]
    done = run(made)
    assert done.returncode == 0 and "going on from" in done.stdout
