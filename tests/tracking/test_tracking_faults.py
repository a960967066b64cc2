"""Servers that do not answer, records that are wrong, moves at a bad moment, studies of one name, other machines."""

import errno
import fcntl
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
import tracked_files as files
from filelock import FileLock
from runs import RUN
from tracked_files import only, place, track

from mcgrpo.files import write_jsonl
from mcgrpo.tracking import FOLLOWED, MACHINE, __main__, contents, follow, system
from mcgrpo.tracking.__main__ import Tracked
from mcgrpo.tracking.store import IDENTITY, identity_of
from mcgrpo.tracking.sync import Training, logging_lock, places
from mcgrpo.train.attempts import LOCK

OTHER = replace(RUN, seed=4)


@pytest.fixture
def results(tmp_path, uri, monkeypatch):
    """A study of two finished trainings, and its store."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    for run in (RUN, OTHER):
        files.write(place(tmp_path / "mini", run).finished, run)
    return tmp_path / "mini"


def following(uri, results):
    follower = follow.Follower(uri, lambda: places(results))
    follower.over.clear()
    return follower


def logged(results, monkeypatch, *options):
    """What `--output` says after a call."""
    output = results / "tracking.json"
    track(results, monkeypatch, "--output", str(output), *options)
    return json.loads(output.read_text())


class TestAServerThatNeverAnswers:
    def test_is_asked_once_in_a_look(self, results, monkeypatch, capfd):
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        asked = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=accept, args=(server, asked), daemon=True).start()
            assert not following(f"http://127.0.0.1:{server.getsockname()[1]}", results).look()
        assert len(asked) == 1
        assert capfd.readouterr().err.count("was not tracked in MLflow: ") == 1

    def test_is_left_alone_for_a_while(self, results, tmp_path, monkeypatch):
        for name, value in {"INTERVAL_SECONDS": 0.0, "LOOK_SECONDS": 0.01, "LAST_SECONDS": 0.0}.items():
            monkeypatch.setattr(follow, name, value)
        (tmp_path / "file").write_text("no folder")
        follower, looks = following(f"sqlite:///{tmp_path}/file/no.db", results), []
        look = follower.look
        follower.look = lambda: looks.append(1) or look()
        polls = iter(range(50))
        follow.follow(follower, lambda: next(polls, None) is None)
        assert len(looks) == 2  # the first, and the last when its parent has ended

    def test_does_not_block_track_for_long(self, results, monkeypatch, capfd):
        monkeypatch.setattr(__main__, "LOCK_SECONDS", 0.2)
        held, done = threading.Event(), threading.Event()
        holder = threading.Thread(target=hold, args=(logging_lock(results), held, done))
        holder.start()
        held.wait()
        try:
            assert logged(results, monkeypatch) == {}
            assert "warning: the study was not tracked in MLflow: TimeoutError: another" in capfd.readouterr().err
            with pytest.raises(SystemExit, match="another process has been logging"):
                track(results, monkeypatch)
        finally:
            done.set()
            holder.join()
        assert len(logged(results, monkeypatch)) == 2


def accept(server, asked):
    while True:
        try:
            asked.append(server.accept())
        except OSError:
            return


def hold(lock, held, done):
    with lock:
        held.set()
        done.wait()


@pytest.mark.parametrize("whole", [True, False])
def test_a_move_between_record_and_rows_loses_none(uri, tmp_path, monkeypatch, whole):
    """What `mcgrpo.train.job.finish` does while the follower is in between; it removes files one after another."""
    where = place(tmp_path)
    files.write(where.unfinished, steps=3)
    attach = Training._attach

    def moving(self, new):
        attach(self, new)
        shutil.copytree(where.unfinished, where.finished, dirs_exist_ok=True)
        (where.unfinished / "metrics.jsonl").unlink(missing_ok=True)
        if whole:
            shutil.rmtree(where.unfinished)

    follower = following(uri, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Training, "_attach", moving)
        assert not follower.look()
    if not whole:
        shutil.rmtree(where.unfinished)
    assert follower.look()
    run = only(follower.store)
    assert run.info.status == "FINISHED" and run.data.metrics["loss"] == 0.5 / 3


@pytest.mark.slow
def test_a_follower_whose_parent_ends_at_once_ends_too(tmp_path):
    """Its output is closed when both have ended."""
    code = "from mcgrpo.tracking import follower; print(follower('--results', 'mini').pid, flush=True)"
    (tmp_path / "mini").mkdir()
    environment = {key: value for key, value in os.environ.items() if key != FOLLOWED}
    environment |= {"MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db"}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment, stdout=subprocess.PIPE)
    pid = int(process.stdout.readline())
    try:
        process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.kill(pid, 9)
        raise
    assert process.returncode == 0


class TestABadRecord:
    def test_does_not_keep_a_follower_from_the_others(self, results, uri, capfd):
        record = place(results).finished / "run.json"
        record.write_text(json.dumps(json.loads(record.read_text()) | {"old_field": 1}))
        follower = following(uri, results)
        for _ in range(3):
            follower.look()
        assert only(follower.store).info.run_name == OTHER.name
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"warning: run {RUN.name} was not tracked") and "old_field" in line

    @pytest.mark.parametrize(
        ("name", "broken"),
        [
            *(("run.json", text) for text in ("{", '{"outcome": {}}', '{"outcome": {"status": "finished"}}')),
            ("metrics.jsonl", '{"loss": 1.0}\n'),
        ],
    )
    def test_or_track(self, results, monkeypatch, capfd, name, broken):
        (place(results).finished / name).write_text(broken)
        assert OTHER.name in logged(results, monkeypatch)
        assert f"warning: run {RUN.name} was not tracked" in capfd.readouterr().err
        with pytest.raises(SystemExit, match=f"incomplete: {RUN.name}"):
            track(results, monkeypatch)

    def test_nor_does_a_missing_model(self, results, monkeypatch, capfd):
        assert len(logged(results, monkeypatch, "--register-models")) == 2
        said = capfd.readouterr().err
        assert [said.count(f"run {run.name} was not") for run in (RUN, OTHER)] == [1, 1]
        assert "no weights to register; keep_models keeps them" in said

    def test_of_the_study_leaves_the_ids(self, results, monkeypatch, capfd):
        (results / "summary.csv").write_text("no,columns\n1,2\n")
        assert len(logged(results, monkeypatch)) == 2
        assert "warning: the study was not tracked" in capfd.readouterr().err


def test_no_sample_is_written_after_its_block(tmp_path, monkeypatch):
    """A GPU may take its time to answer."""
    machine, calls = system._machine, []

    def slow():
        calls.append(1)
        time.sleep(0.5 if len(calls) > 1 else 0)
        return machine()

    monkeypatch.setattr(system, "_machine", slow)
    monkeypatch.setattr(system, "FIRST_SECONDS", 0.0)
    with system.sampled(tmp_path / "system.jsonl"):
        while len(calls) < 2:
            time.sleep(0.01)
    assert "system metrics" not in [thread.name for thread in threading.enumerate()]


class TestTwoStudiesOfOneName:
    def test_leave_each_others_runs_and_those_of_nobody(self, uri, tmp_path):
        made = []
        for who, started in (("alice", 1_700_000_000.0), ("bob", 1_700_001_000.0)):
            files.write(place(tmp_path / who / "mini").finished, started=started)
            made.append(Tracked(uri, tmp_path / who / "mini"))
            made[-1].trainings()
        alice, bob = made
        client, mine = alice.store.client, {contents.KIND: "training", contents.RUN: RUN.name}
        by_hand = client.create_run(alice.store.experiment, tags=mine).info.run_id
        before = dict(alice.ids)
        alice.trainings()
        assert alice.ids == before
        bob.forget()
        runs = (alice.ids[RUN.name], bob.ids[RUN.name], by_hand)
        assert [client.get_run(each).info.lifecycle_stage for each in runs] == ["active", "deleted", "active"]

    def test_what_is_followed_is_of_the_study_that_track_knows(self, results, uri, monkeypatch):
        follower = following(uri, results)
        follower.look()
        live = {run.info.run_name: run.info.run_id for run in follower.store.search()}
        assert logged(results, monkeypatch) == live

    def test_an_id_is_made_once(self, tmp_path):
        assert identity_of(tmp_path) == identity_of(tmp_path) == (tmp_path / IDENTITY).read_text().strip()
        assert [path.name for path in tmp_path.iterdir()] == [IDENTITY]


class TestATrainingLives:
    @pytest.fixture
    def where(self, tmp_path):
        """Silent, on another machine."""
        where = place(tmp_path)
        files.write(where.unfinished, status="running")
        (where.unfinished / LOCK).touch()
        (where.unfinished / MACHINE).write_text("another")
        for path in where.unfinished.iterdir():
            os.utime(path, (1, 1))
        return where

    def test_while_its_lock_is_held(self, where):
        with FileLock(where.unfinished / LOCK):
            assert where.alive
        assert not where.alive

    def test_not_because_another_asks_at_the_same_time(self, where):
        with (where.unfinished / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            assert not where.alive

    @pytest.mark.parametrize("locks", [True, False])
    def test_elsewhere_or_without_locks_while_its_files_change(self, where, monkeypatch, locks):
        def none(*_):
            raise OSError(errno.ENOLCK, "no locks")

        if not locks:
            monkeypatch.setattr(fcntl, "flock", none)
        assert not where.alive
        os.utime(where.unfinished / "system.jsonl")
        assert where.alive

    def test_here_no_longer_than_its_lock_is_held(self, where):
        os.utime(where.unfinished / "system.jsonl")
        (where.unfinished / MACHINE).write_text(platform.node())
        assert not where.alive

    def test_elsewhere_while_its_steps_take_longer_than_it_has_been_silent(self, where):
        silent = time.time() - 1000
        for name in ("run.json", "system.jsonl"):
            os.utime(where.unfinished / name, (silent, silent))
        assert not where.alive
        write_jsonl(where.unfinished / "metrics.jsonl", [{"step": n, "time": 300.0 * n, "loss": 1.0} for n in (1, 2)])
        os.utime(where.unfinished / "metrics.jsonl", (silent, silent))
        assert where.alive
