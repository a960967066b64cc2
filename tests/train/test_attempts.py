"""Trainings that end before their time, as processes of their own; and those that go on from there."""

import math
import shutil
import signal
import sys
import time
from dataclasses import replace

import pytest
from learning_trainings import (
    HERE,
    LONG,
    ON_TWO_GPUS,
    TWO_PROCESSES,
    assert_ended_alike,
    assert_resumes_alike,
    finished,
    held_at,
    killed_at,
    learned,
    run,
    started,
)
from pretend_machine import PATIENCE_SECONDS, wait_until
from training_jobs import RUN, changed, job, outcome, steps

from mcgrpo.files import read_json, read_jsonl
from mcgrpo.records import VERDICTS, Group, Rollout
from mcgrpo.study.paths import ERROR, RECORD
from mcgrpo.study.trained import read_record
from mcgrpo.train import attempts
from mcgrpo.train.callbacks import Checkpoints
from mcgrpo.train.job import identity, record_attempt, run_job, write
from mcgrpo.train.rollout_files import GROUPS, ROLLOUTS

pytestmark = pytest.mark.slow
SELECTING = {"select_checkpoint": "best-on-test", "eval_steps": 2}
BEST = replace(LONG, training=LONG.training | SELECTING)
SHARDED = LONG.training | {"sharding": "fsdp"}


def test_a_killed_training_ends_as_an_uninterrupted_one(inputs, trainings, tmp_path):
    """Twice killed, once in the second use of its rollouts."""
    whole, _ = trainings
    broken = job(inputs, tmp_path, LONG, save_steps=3)
    for step in (3, 6):
        killed_at(broken, step)
    kept = steps(broken.home)
    assert outcome(broken.home)["status"] == "running" and len(kept) >= 6
    said = finished(broken)
    assert "going on from" in said and "checkpoint-6" in said
    assert_ended_alike(whole, broken)
    assert steps(broken.output)[:6] == kept[:6] and not broken.home.exists()
    assert outcome(broken.output)["seconds"] < time.time() - outcome(broken.output)["started"]


def test_one_whose_best_checkpoint_is_selected_ends_alike_too(inputs, tmp_path):
    whole, broken = (job(inputs, tmp_path / name, BEST, save_steps=2) for name in ("whole", "broken"))
    finished(whole)
    assert learned(whole)
    assert_resumes_alike(whole, broken, (2, 6))


def test_one_whose_best_checkpoint_is_gone_does_not_end_with_another(inputs, tmp_path, monkeypatch):
    """As after a crash, where it was damaged."""

    def remove(callback, args, state, control, **kwargs):
        if state.best_model_checkpoint:
            state.best_metric = math.inf
            shutil.rmtree(state.best_model_checkpoint, ignore_errors=True)

    monkeypatch.setattr(Checkpoints, "on_step_begin", remove)
    made = job(inputs, tmp_path, replace(BEST, training=BEST.training | {"max_steps": 4}), save_steps=2)
    with pytest.raises(ValueError, match=r"the selected checkpoint .*checkpoint-2 is not there any more"):
        run_job(made)
    assert not made.weights.exists() and outcome(made.home)["status"] == "failed"


def test_two_killed_processes_end_as_uninterrupted_ones(inputs, tmp_path):
    """torchrun's agent is killed, and its processes with it; a LoRA training has checkpoints of its adapters only."""
    trained = replace(LONG, training=LONG.training | {"lora": {"r": 4, "target_modules": "all-linear"}})
    whole, broken = (job(inputs, tmp_path / name, trained, save_steps=2) for name in ("whole", "broken"))
    finished(whole, launcher=TWO_PROCESSES)
    assert_one_run_of_two(whole)
    assert_resumes_alike(whole, broken, [4], launcher=TWO_PROCESSES)


@pytest.mark.parametrize(("model", "more"), [("model", {"gradient_checkpointing": True}), ("untied", {})])
def test_two_killed_processes_that_share_the_weights_end_as_uninterrupted_ones(inputs, tmp_path, model, more):
    """FSDP, with a reference model; the embedding of untied weights is a unit of its own."""
    trained = replace(LONG, training=SHARDED | more)
    whole, broken = (job(inputs, tmp_path / name, trained, model, save_steps=3, gpus=2) for name in ("whole", "broken"))
    finished(whole, ON_TWO_GPUS, TWO_PROCESSES)
    assert_one_run_of_two(whole)
    assert any(row["kl"] for row in steps(whole.output))
    assert_resumes_alike(whole, broken, [3], ON_TWO_GPUS, TWO_PROCESSES)


def test_sharded_processes_select_a_checkpoint_without_any_to_resume_from(inputs, tmp_path):
    """Checkpoints of the model alone are none that transformers loads into shards."""
    made = job(inputs, tmp_path, replace(LONG, training=SHARDED | {"max_steps": 4} | SELECTING), gpus=2)
    finished(made, ON_TWO_GPUS, TWO_PROCESSES)
    assert outcome(made.output)["selected_step"] in (2, 4) and made.weights.is_dir()


def test_the_error_of_another_process_is_that_of_a_training_whose_first_was_killed(inputs, tmp_path):
    made = job(inputs, tmp_path, LONG, save_steps=2)
    process = started(made, HERE | {"RAISES": "1"}, TWO_PROCESSES)
    left = made.home / ERROR
    assert wait_until(lambda: left.is_file() and left.read_text())
    process.kill()
    process.wait(PATIENCE_SECONDS)
    with attempts.alone(made.home):
        assert outcome(made.home)["status"] == "running"
    _, found = read_record(made.home / RECORD, sealed=False)
    assert (found.status, found.error) == ("failed", "process 1: ArithmeticError: no reward")


def test_of_several_errors_that_of_the_process_that_failed_first_is_recorded(killed, monkeypatch):
    _, begun = read_record(killed.home / RECORD, sealed=False)
    ended = "SystemExit: terminated"
    for rank, error in (("1", "ArithmeticError: no reward"), ("2", ended), ("0", ended)):
        monkeypatch.setenv("RANK", rank)
        write(killed, replace(begun, status="failed", error=error))
    assert outcome(killed.home)["error"] == "process 1: ArithmeticError: no reward"


def test_the_error_of_another_process_is_gone_when_the_training_goes_on(killed, monkeypatch):
    """First of all: what another process leaves from then on is of this attempt."""
    (killed.home / ERROR).write_text("process 1: ArithmeticError: no reward")
    monkeypatch.setattr("mcgrpo.train.job.initial_model", lambda *_: sys.exit("at its start"))
    with pytest.raises(SystemExit, match="at its start"):
        record_attempt(killed)
    _, found = read_record(killed.home / RECORD, sealed=False)
    assert found.status == "running" and not found.error


def assert_one_run_of_two(made):
    """One record, one row a step, one set of weights, and the rollouts of both processes."""
    assert outcome(made.output)["status"] == "finished" and learned(made)
    assert [row["step"] for row in steps(made.output)] == list(range(1, 9))
    assert (made.weights / "tokenizer.json").is_file()
    counted = [row for row in steps(made.output) if "verdicts/wrong" in row]
    for row in counted:  # TRL averages a metric over processes: each scored its own 4 prompts x 3 rollouts
        assert sum(row[f"verdicts/{verdict}"] for verdict in VERDICTS) == 12
    assert counted
    assert_rollouts_are_of_their_groups(made, prompts=8)


def assert_rollouts_are_of_their_groups(made, prompts):
    groups = read_jsonl(made.output / GROUPS, Group)
    assert [row.group for row in groups if row.step == 1] == list(range(prompts))
    rows = read_jsonl(made.output / ROLLOUTS, Rollout)
    for step in {row.step for row in rows}:
        of_step = [row.rewards for row in groups if row.step == step][:3]
        assert [row.reward for row in rows if row.step == step] == [value for each in of_step for value in each]


def test_another_training_does_not_go_on_from_it(killed, capsys):
    left = read_json(killed.home / attempts.IDENTITY)
    other = replace(killed, run=replace(LONG, seed=LONG.seed + 1))
    assert identity(killed)["run"] == left["run"] != identity(other)["run"]
    assert attempts.begin(killed.home, left | {"run": identity(other)["run"]}) == attempts.Earlier()
    assert f"starting again: run changed since {killed.home} was written" in capsys.readouterr().out
    assert attempts.last_checkpoint(killed.checkpoints) is None and not (killed.home / "metrics.jsonl").exists()


def test_a_later_checkpoint_that_is_not_whole_does_not_outlive_those_to_come(killed):
    """Killed while it wrote that of step 7: it would be newer than that of step 6."""
    unfinished = killed.checkpoints / "checkpoint-7"
    unfinished.mkdir()
    killed_at(killed, 6)
    assert attempts.last_checkpoint(killed.checkpoints).name == "checkpoint-6" and not unfinished.exists()


def test_a_copy_of_a_checkpoint_does_not_count_as_one(killed):
    for stray in ("checkpoint-foo", "checkpoint-9 copy"):
        shutil.copytree(killed.checkpoints / "checkpoint-4", killed.checkpoints / stray)
    assert attempts.checkpoints(killed.checkpoints) == [killed.checkpoints / "checkpoint-4"]


def test_a_training_that_was_killed_while_it_was_cleared_away_starts_afresh(killed, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(attempts.shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        attempts.clear(killed.home)
    monkeypatch.undo()
    assert attempts.begin(killed.home, {}) == attempts.Earlier() and not killed.checkpoints.exists()


def test_what_says_only_how_rollouts_are_drawn_does_not_start_it_afresh(inputs, tmp_path):
    made = job(inputs, tmp_path, changed(vllm_gpu_memory_utilization=0.3))
    assert identity(made) == identity(replace(made, run=changed(vllm_gpu_memory_utilization=0.2)))
    assert identity(made) != identity(replace(made, run=changed(learning_rate=1.0)))
    assert identity(made) != identity(replace(made, gpus=1))


def test_other_inputs_code_packages_or_processes_start_it_afresh(inputs, tmp_path, monkeypatch):
    made, other = job(inputs, tmp_path, LONG), tmp_path / "other.jsonl"
    plain = identity(made)
    other.write_text("{}")
    for change in ({"model": tmp_path}, {"data": other}, {"test": other}, {"code": "another"}):
        assert identity(replace(made, **change)) != plain, change
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert identity(made) != plain
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.setattr("mcgrpo.train.job.VERSIONS", {"torch": "1.0"})
    assert identity(made) != plain


def test_two_processes_never_train_one_run(inputs, tmp_path, monkeypatch):
    made = job(inputs, tmp_path, LONG)
    with attempts.alone(made.home), pytest.raises(TimeoutError):
        monkeypatch.setattr(attempts, "LOCK_SECONDS", 0.1)
        run_job(made)


def test_a_loss_that_is_no_number_stops_the_training(inputs, tmp_path):
    made = job(inputs, tmp_path, replace(LONG, training=LONG.training | {"learning_rate": 1e38}), save_steps=1)
    done = run(made)
    assert done.returncode != 0
    assert f"error: {RUN.name}: " in done.stderr and "at step" in done.stderr and "is nan" in done.stderr
    assert outcome(made.home)["status"] == "failed" and "FloatingPointError" in outcome(made.home)["error"]
    assert not made.output.exists() and not made.weights.exists()


def test_a_full_disk_is_named(inputs, small_disk):
    made = job(inputs, small_disk, LONG, save_steps=1)
    (small_disk / "filler").write_bytes(bytes(2_000_000 - 350_000))
    done = run(made)
    assert done.returncode != 0
    assert f"the disk of {made.home} is full" in done.stderr
    assert steps(made.home) and not made.output.exists()
    (small_disk / "filler").unlink()
    finished(made)
    assert len(steps(made.output)) == 8


def test_ctrl_c_leaves_a_training_to_go_on_with(inputs, tmp_path):
    made = job(inputs, tmp_path, LONG, save_steps=2)
    process = held_at(made, 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_SECONDS) != 0
    assert outcome(made.home)["status"] == "failed" and "KeyboardInterrupt" in outcome(made.home)["error"]
    assert "going on from" in finished(made)
