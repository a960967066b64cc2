import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
import tracked_files as files
from filelock import FileLock
from runs import RUN
from tracked_files import LOGS, content, only, place, steps

from mcgrpo.study.protocols import training_changes
from mcgrpo.tracking import contents, follow
from mcgrpo.tracking.series import METRIC_BYTES, STEP_METRICS
from mcgrpo.tracking.store import Store, metric_name
from mcgrpo.tracking.sync import Training, places
from mcgrpo.train.attempts import LOCK


@pytest.fixture
def store(uri):
    return Store(uri, "mini")


@pytest.fixture
def where(tmp_path):
    return place(tmp_path)


class TestATraining:
    def test_is_one_run(self, store, where):
        files.write(where.finished, steps=3)
        assert Training(store, where).update() == "FINISHED"
        found = content(store, only(store))
        assert found["info"] == {
            "run_name": "toy/mc-grpo/G4/default/seed3",
            "status": "FINISHED",
            "start_time": 1_700_000_000_250,
            "end_time": 1_700_000_013_000,
        }
        assert found["params"]["learning_rate"] == "0.0002" and found["params"]["rewards"] == '{"accuracy": 1.0}'
        tags = {"setting": "toy", "method": "mc-grpo", "G": "4", "estimator": "median-mad", "seed": "3"}
        assert (tags | {"protocol": "paper", "commit": "abc-dirty", "steps": "3"}).items() <= found["tags"].items()
        assert {name: [(step, value) for step, value, _ in rows] for name, rows in found["metrics"].items()} == {
            "loss": [(1, 0.5), (2, 0.25), (3, 0.5 / 3)],
            "drawn/reward": [(1, 0.25), (2, 0.5), (3, 0.75)],
            "grad_norm": [(1, 1.0), (3, 1.0)],
            "system/cpu_utilization_percentage": [(0, 50.0)],
        }

    def test_has_its_data_set_as_one(self, store, where):
        import mlflow.data

        files.write(where.finished)
        Training(store, where).update()
        (used,) = only(store).inputs.dataset_inputs
        assert (used.dataset.name, used.dataset.digest) == ("sums", "ab" * 8)
        assert mlflow.data.get_source(used.dataset).uri == "resources/data/mini/sums.jsonl"
        assert [(tag.key, tag.value) for tag in used.tags] == [("mlflow.data.context", "training")]

    def test_is_followed_row_by_row(self, store, where):
        training = Training(store, where)
        assert training.update() == "" and not list(store.search())
        files.write(where.unfinished, logs=LOGS[:1], status="running")
        with FileLock(where.unfinished / LOCK):
            assert training.update() == "RUNNING"
            files.write(where.unfinished, status="running", samples=8)
            with (where.unfinished / "metrics.jsonl").open("a") as file:
                file.write('{"step": 4, "lo')  # half a line
            assert training.update() == "RUNNING"
        assert (steps(store), steps(store, "system/cpu_utilization_percentage")) == ([1, 2, 3], [0, 6])
        assert only(store).info.status == "RUNNING"

    @pytest.mark.parametrize(
        ("outcome", "status"),
        [
            ({"status": "failed", "error": "RuntimeError: x"}, "FAILED"),
            ({"status": "failed", "error": "KeyboardInterrupt: "}, "KILLED"),
            ({"status": "failed", "error": "SystemExit: terminated"}, "KILLED"),
            ({"status": "running"}, "KILLED"),  # by SIGKILL: it could not write its end, but its lock is free
        ],
    )
    def test_that_ends_badly_is_marked_so(self, store, where, outcome, status):
        files.write(where.unfinished, **outcome)
        assert Training(store, where).update() == status
        run = only(store)
        assert run.info.status == status and run.info.end_time == 1_700_000_013_000
        assert run.data.metrics["loss"] == 0.5 / 3
        assert run.data.tags[contents.NOTE] == (f"`{outcome['error']}`" if "error" in outcome else "")

    def test_that_is_resumed_goes_on_in_its_run(self, store, where):
        """Killed after 3 steps with a checkpoint at 2; a follower of its own for each attempt."""
        files.write(where.unfinished, status="failed", error="SystemExit: terminated")
        Training(store, where).update()
        first = only(store).info.run_id
        training = Training(store, where)
        with FileLock(where.unfinished / LOCK):
            files.write(where.unfinished, logs=LOGS[:2], status="running")
            training.update()
            assert only(store).info.status == "RUNNING"
        files.finish(where, logs=[*LOGS, LOGS[0]], begun=1_700_000_500.0)
        assert training.update() == "FINISHED"
        run = only(store)
        assert (run.info.run_id, run.info.status, steps(store)) == (first, "FINISHED", [1, 2, 3, 4])

    def test_of_another_start_takes_its_place(self, store, where):
        files.write(where.finished, logs=LOGS[:1])
        Training(store, where).update()
        files.write(where.finished, started=1_700_000_100.0)
        Training(store, where).update()
        assert only(store).info.start_time == 1_700_000_100_000
        assert only(store).data.metrics["loss"] == 0.5 / 3

    def test_logged_twice_is_logged_once(self, store, where):
        files.write(where.finished)
        found = []
        for _ in range(2):
            Training(store, where).update()
            found.append((content(store, only(store)), only(store).info.run_id))
        assert found[0] == found[1]

    def test_followed_live_is_what_a_replay_makes(self, store, uri, where):
        live = Training(store, where)
        for number in (1, 2, 3):
            files.write(where.unfinished, logs=LOGS[:number], status="running")
            with FileLock(where.unfinished / LOCK):
                live.update()
        files.finish(where, steps=3, seconds=9.5, rollouts="transformers")
        live.update()
        again = Store(uri, "again")
        Training(again, where).update()
        assert content(again, only(again)) == content(store, only(store))

    def test_loses_nothing_to_a_store_that_fails_in_between(self, store, where, tmp_path, monkeypatch):
        files.write(where.unfinished, logs=LOGS[:1], status="running")
        follower = follow.Follower("", lambda: places(tmp_path))
        follower.store = store
        follower.look()
        with monkeypatch.context() as broken:
            broken.setattr(store.client, "log_batch", lambda *_, **__: 1 / 0)
            files.write(where.unfinished, logs=LOGS[:2], status="running")
            assert not follower.look()
        files.finish(where)
        assert follower.look() and steps(store) == [1, 2, 3]


class TestAFollower:
    def test_leaves_what_was_finished_before_it_came(self, store, where, tmp_path):
        files.write(where.finished)
        follower = follow.Follower("", lambda: places(tmp_path))
        follower.store = store
        other = replace(RUN, seed=4)
        files.write(place(tmp_path, other).finished, other)
        assert follower.look()
        assert only(store).data.tags["seed"] == "4"

    def test_warns_once_of_a_store_that_is_gone(self, where, tmp_path, capfd):
        follower = follow.Follower(f"sqlite:///{tmp_path}/runs.db/no", lambda: places(tmp_path))
        (tmp_path / "runs.db").write_text("a file")
        files.write(where.finished)
        assert not follower.look() and not follower.look()
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"warning: run {RUN.name} was not tracked in MLflow: ")


class TestAStore:
    def test_is_in_wal_mode_so_that_readers_do_not_block_the_writer(self, empty_store):
        with sqlite3.connect(empty_store) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    @pytest.mark.slow
    def test_of_an_earlier_mlflow_is_migrated(self, tmp_path):
        path = tmp_path / "old.db"
        before, head = earlier_store(f"sqlite:///{path}")
        assert version_of(path) == before != head
        Store(f"sqlite:///{path}", "mini")
        assert (version_of(path), version_of(tmp_path / "old.db.before-migration")) == (head, before)

    def test_its_page_is_the_runs_also_in_a_new_browser(self, store):
        page = f"#/experiments/{store.experiment}/runs?workflowType=machine_learning"
        assert store.page == f"http://127.0.0.1:5000/{page}"
        store.uri = "http://server:5000/"
        assert store.page == f"http://server:5000/{page}"

    def test_has_what_runs_are_compared_by(self, store, where):
        logs = [dict.fromkeys([*STEP_METRICS, "learning_rate", "clip_ratio/low_mean", "m@2"], 1.0)]
        files.write(where.finished, logs=logs, samples=1)
        Training(store, where).update()
        assert set(only(store).data.metrics) == {*STEP_METRICS, "system/cpu_utilization_percentage"}

    @pytest.mark.slow
    def test_takes_as_many_bytes_a_step_as_plan_counts(self, uri, store, where):
        """Steps of 52 metrics, as a training logs them; all of them would take 15 kB a step."""
        logs = [dict.fromkeys([*STEP_METRICS, *(f"group/name-{n}" for n in range(42))], n / 7) for n in range(400)]
        files.write(where.finished, logs=logs, samples=0)
        Training(store, where).update()
        with closing(sqlite3.connect(uri.removeprefix("sqlite:///"))) as connection:
            pages = connection.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE '%metric%'").fetchone()[0]
        per_metric = pages / len(logs) / len(STEP_METRICS)
        assert 0.6 * METRIC_BYTES < per_metric < METRIC_BYTES

    def test_gets_a_step_whole(self, store, monkeypatch):
        """More metrics than MLflow accepts at once: a request ends between two steps."""
        sizes, log = [], store.client.log_batch

        def counting(run_id, metrics, **others):
            sizes.append(len(metrics))
            log(run_id, metrics=metrics, **others)

        monkeypatch.setattr(store.client, "log_batch", counting)
        run = store.client.create_run(store.experiment).info.run_id
        store.log(run, [{"step": step, "time": 1.0, **{f"m{n}": 1.0 for n in range(300)}} for step in range(5)])
        assert sizes == [900, 600]


def earlier_store(uri):
    """Make a store as the MLflow before the last migration did; returns its version, and the one that is to come."""
    from alembic import command
    from alembic.script import ScriptDirectory
    from mlflow.store.db.utils import InitialBase, _get_alembic_config, create_sqlalchemy_engine

    config = _get_alembic_config(uri)
    head = ScriptDirectory.from_config(config).get_revision("head")
    engine = create_sqlalchemy_engine(uri)
    InitialBase.metadata.create_all(engine)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, head.down_revision)
    engine.dispose()
    return head.down_revision, head.revision


def version_of(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("accuracy/gsm8k/avg@16", "accuracy/gsm8k/avg_at_16"),
        ("a (b)%", "a _b__"),
        ("rewards/accuracy_reward/mean: x-1.0", "rewards/accuracy_reward/mean: x-1.0"),
    ],
)
def test_a_metric_has_a_name_that_mlflow_accepts(name, accepted):
    assert metric_name(name) == accepted


def test_the_protocol_is_known_by_what_it_changes():
    changes = training_changes("released", RUN.method, RUN.task)
    estimator = changes.pop("estimator", RUN.estimator)
    assert contents.protocol_of(RUN) == "paper"
    assert contents.protocol_of(replace(RUN, estimator=estimator, training=RUN.training | changes)) == "released"


def test_what_a_training_imports_of_tracking_imports_no_mlflow():
    """All else that it imports: `learning_job`, in tests/train/test_attempts.py."""
    code = "import sys; from mcgrpo.tracking import tracked; print('mlflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
