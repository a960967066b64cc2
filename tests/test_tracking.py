import json
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from runs import RUN

from mcgrpo.callbacks import MetricsFile, TrackingCallback
from mcgrpo.files import iter_json_lines, write_csv, write_json, write_jsonl
from mcgrpo.records import Run, Score
from mcgrpo.tracking import Journal, Store, main, metric_name, replay

OUTCOME = {"status": "finished", "started": 1_700_000_000.25, "commit": "abc-dirty", "seconds": 9.0}
LOGS = [{"loss": 0.5 / step, "drawn/reward": step / 4, "odd@2": step, "grad_norm": 1.0} for step in (1, 2, 3)]
LOGS[1]["grad_norm"] = float("nan")


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory):
    """The file of a new store; to make its tables takes MLflow seconds."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    Store(f"sqlite:///{path}", "another")
    return path


@pytest.fixture
def uri(empty_store, tmp_path, monkeypatch):
    """A store of the test's own, in MLFLOW_TRACKING_URI."""
    with sqlite3.connect(empty_store) as source, sqlite3.connect(tmp_path / "mlflow.db") as copy:
        source.backup(copy)
    address = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    return address


def train(folder, run=RUN, outcome=OUTCOME, logs=LOGS, error=None):
    """What a training does with its callbacks: rows to metrics.jsonl and, where there is a store, to MLflow."""
    callbacks = [MetricsFile(folder / "metrics.jsonl"), TrackingCallback(run, outcome, folder / "metrics.jsonl")]
    for callback in callbacks:
        callback.on_train_begin(None, SimpleNamespace(is_world_process_zero=True, global_step=0), None)
    for step, row in enumerate([*logs, {"train_runtime": 3.0}], 1):
        for callback in callbacks:
            callback.on_log(None, SimpleNamespace(global_step=step, is_world_process_zero=True), None, logs=row)
    if error is None:
        callbacks[1].on_train_end(None, None, None)
    else:
        callbacks[1].failed(error)
    write_json(folder / "run.json", asdict(run) | {"outcome": outcome})


def history(store, run_id):
    names = store.client.get_run(run_id).data.metrics
    return {name: [(m.step, m.value) for m in store.client.get_metric_history(run_id, name)] for name in names}


def runs_of(uri):
    store = Store(uri, "mini")
    return store, store.client.search_runs([store.experiment])


def test_a_training_job_is_one_run(uri, tmp_path):
    train(tmp_path / "run")
    store, (found,) = runs_of(uri)
    assert found.info.run_name == "toy/mc-grpo/G4/default/seed3"
    assert (found.info.status, found.info.start_time) == ("FINISHED", 1_700_000_000_250)
    assert found.data.params["estimator"] == "median-mad"
    assert found.data.params["learning_rate"] == "0.0002"
    assert found.data.tags["mcgrpo.run"] == RUN.name
    assert found.data.tags["commit"] == "abc-dirty"
    assert history(store, found.info.run_id) == {
        "loss": [(1, 0.5), (2, 0.25), (3, 0.5 / 3)],
        "drawn/reward": [(1, 0.25), (2, 0.5), (3, 0.75)],
        "odd_at_2": [(1, 1.0), (2, 2.0), (3, 3.0)],
        "grad_norm": [(1, 1.0), (3, 1.0)],
        "last_step": [(3, 3.0)],
    }


def test_a_rerun_takes_its_place(uri, tmp_path):
    train(tmp_path / "run", logs=LOGS[:2])
    train(tmp_path / "run", outcome=OUTCOME | {"started": 1_700_000_100.0})
    _, (found,) = runs_of(uri)
    assert found.data.metrics["last_step"] == 3


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("x"), "FAILED"), (KeyboardInterrupt(), "KILLED")])
def test_a_training_that_fails_is_marked_so(uri, tmp_path, error, status):
    train(tmp_path / "run", logs=LOGS[:1], error=error)
    _, (found,) = runs_of(uri)
    assert found.info.status == status
    assert found.data.metrics["loss"] == 0.5
    assert "last_step" not in found.data.metrics


def test_without_a_store_nothing_happens(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    train(tmp_path / "run")
    assert len(list(iter_json_lines(tmp_path / "run" / "metrics.jsonl"))) == 3


def test_one_process_of_several_writes(uri, tmp_path):
    callback = MetricsFile(tmp_path / "metrics.jsonl")
    callback.on_log(None, SimpleNamespace(global_step=1, is_world_process_zero=False), None, logs=LOGS[0])
    assert not (tmp_path / "metrics.jsonl").exists()
    other = SimpleNamespace(is_world_process_zero=False)
    TrackingCallback(RUN, OUTCOME, tmp_path / "metrics.jsonl").on_train_begin(None, other, None)
    assert runs_of(uri)[1] == []


def test_the_last_step_is_marked_though_all_was_sent(uri):
    journal = Journal(RUN)
    journal.start(OUTCOME)
    journal.add({"step": 1, "loss": 0.5})
    journal.flush()
    journal.finish("FINISHED")
    _, (found,) = runs_of(uri)
    assert found.data.metrics["last_step"] == 1


def test_replay_is_what_live_journaling_is(uri, tmp_path, monkeypatch):
    train(tmp_path / "run")
    store, (live,) = runs_of(uri)
    replayed = Store(uri, "again")
    run_id = replayed.replay(RUN, tmp_path / "run")
    again = replayed.client.get_run(run_id)
    assert history(replayed, run_id) == history(store, live.info.run_id)
    assert again.data.params == live.data.params
    assert again.data.tags == live.data.tags
    assert (again.info.status, again.info.start_time) == (live.info.status, live.info.start_time)


def test_replay_leaves_a_whole_run_and_mends_all_others(uri, tmp_path, monkeypatch):
    train(tmp_path / "run")
    store, (live,) = runs_of(uri)
    assert store.replay(RUN, tmp_path / "run") == live.info.run_id
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    train(tmp_path / "run", outcome=OUTCOME | {"started": 1_700_000_200.0}, logs=[{"loss": 7.0}] * 3)  # untracked
    mended = store.replay(RUN, tmp_path / "run")
    assert mended != live.info.run_id
    assert [run.info.run_id for run in runs_of(uri)[1]] == [mended]
    assert store.client.get_run(mended).data.metrics["loss"] == 7.0


def study(tmp_path):
    """A plan of an untrained run and a trained one, its folder, and their scores."""
    untrained = Run(**{**asdict(RUN), "method": "none", "num_generations": 0, "seed": 0, "training": {}})
    write_json(tmp_path / "plan.json", {"study": "mini", "runs": [asdict(untrained), asdict(RUN)]})
    cell = ("toy", "mc-grpo", 4, "default", 3)
    rows = [
        Score(*cell, "sums", "in", "avg@2", 0.625, 4),
        Score(*cell, "sums", "in", "greedy", 0.5, 4),
        Score(*cell, "train", "train", "seconds", 9.0, 3),
        Score("toy", "none", 0, "default", 0, "sums", "in", "greedy", 0.1, 4),
    ]
    write_csv(tmp_path / "scores.csv", Score, rows)
    train(tmp_path / "runs" / RUN.name)
    return {"study": "mini", "runs": [asdict(untrained), asdict(RUN)]}


def test_scores_are_added(uri, tmp_path):
    found = replay(study(tmp_path), tmp_path, tmp_path / "scores.csv")
    assert list(found) == [RUN.name]
    metrics = Store(uri, "mini").client.get_run(found[RUN.name]).data.metrics
    scores = {name: value for name, value in metrics.items() if name.startswith("accuracy")}
    assert scores == {"accuracy/sums/avg_at_2": 0.625, "accuracy/sums/greedy": 0.5}


def test_names_are_made_fit_in_one_place():
    assert metric_name("accuracy/gsm8k/avg@16") == "accuracy/gsm8k/avg_at_16"
    assert metric_name("a (b)%") == "a _b__"
    assert metric_name("rewards/accuracy_reward/mean: x-1.0") == "rewards/accuracy_reward/mean: x-1.0"


def test_readers_do_not_block_writers(empty_store):
    with sqlite3.connect(empty_store) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


WRITER = """
import dataclasses, json, sys
from mcgrpo.records import Run
from mcgrpo.tracking import Journal
run = dataclasses.replace(Run(**json.loads(sys.argv[1])), seed=int(sys.argv[2]))
journal = Journal(run)
journal.start({"started": 1.7e9})
for step in range(1, 31):
    journal.add({"step": step, **{f"metric{i}": float(step) for i in range(20)}})
    if step % 3 == 0:
        journal.flush()
journal.finish("FINISHED")
sys.exit(journal.store is None)
"""


def test_a_resumed_training_goes_on_in_its_run(tmp_path, uri):
    """Killed after 3 steps, of which the store had 1, with a checkpoint at 2: nothing is missing, nothing twice."""
    train(tmp_path / "run", logs=LOGS[:1], error=RuntimeError("killed"))
    metrics = tmp_path / "run/metrics.jsonl"
    write_jsonl(metrics, [{"step": step, "time": time.time(), "loss": 0.5} for step in (1, 2, 3)])
    state = SimpleNamespace(is_world_process_zero=True, global_step=2)
    callbacks = [MetricsFile(metrics), TrackingCallback(RUN, OUTCOME, metrics)]
    for callback in callbacks:
        callback.on_train_begin(None, state, None)
    for step in (3, 4):
        callbacks[1].on_log(None, SimpleNamespace(global_step=step), None, logs={"loss": 0.25})
    callbacks[1].on_train_end(None, None, None)
    store, (run,) = runs_of(uri)
    assert run.info.status == "FINISHED"
    assert [step for step, _ in history(store, run.info.run_id)["loss"]] == [1, 2, 3, 4]
    assert [row["step"] for _, row in iter_json_lines(metrics)] == [1, 2]


@pytest.mark.slow
def test_four_processes_at_once_lose_nothing(tmp_path, monkeypatch):
    uri = f"sqlite:///{tmp_path}/fresh/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    command = [sys.executable, "-c", WRITER, json.dumps(asdict(RUN))]
    writers = [subprocess.Popen([*command, str(seed)], stderr=subprocess.PIPE, text=True) for seed in range(4)]
    assert {writer.communicate()[1] for writer in writers if writer.wait()} == set()
    store, found = runs_of(uri)
    assert sorted(run.data.params["seed"] for run in found) == ["0", "1", "2", "3"]
    for run in found:
        assert run.info.status == "FINISHED"
        rows = history(store, run.info.run_id)
        assert len(rows) == 21
        steps = [(step, float(step)) for step in range(1, 31)]
        assert all(sorted(points) == steps for name, points in rows.items() if name != "last_step")


def test_a_server_that_is_gone_costs_a_warning(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    start = time.monotonic()
    train(tmp_path / "run")
    assert time.monotonic() - start < 15
    (warning,) = capfd.readouterr().err.splitlines()
    assert warning.startswith("warning: run toy/mc-grpo/G4/default/seed3 was not tracked in MLflow: ")
    assert len(list(iter_json_lines(tmp_path / "run" / "metrics.jsonl"))) == 3


def test_a_store_that_breaks_later_costs_a_warning(uri, tmp_path, capfd):
    journal = Journal(RUN)
    journal.start(OUTCOME)
    journal.store.client.delete_run(journal.run_id)
    for step in range(3):
        journal.add({"step": step, "loss": 1.0})
    journal.flush()
    journal.finish("FINISHED")
    assert capfd.readouterr().err.count("warning: run toy/mc-grpo/G4/default/seed3 was not tracked in MLflow") == 1


def run_main(tmp_path, monkeypatch):
    options = {"plan": "plan.json", "results": ".", "scores": "scores.csv", "output": "tracking.json"}
    flags = [part for key, name in options.items() for part in (f"--{key}", str(tmp_path / name))]
    monkeypatch.setattr("sys.argv", ["tracking", *flags])
    main()
    return (tmp_path / "tracking.json").read_text()


def test_the_command_says_which_run_is_which(uri, tmp_path, monkeypatch):
    study(tmp_path)
    (live,) = runs_of(uri)[1]
    assert f'"{RUN.name}": "{live.info.run_id}"' in run_main(tmp_path, monkeypatch)


def test_the_command_never_fails(tmp_path, monkeypatch, capfd):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    study(tmp_path)
    assert run_main(tmp_path, monkeypatch) == "{}\n"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/plan.json")  # no database
    assert run_main(tmp_path, monkeypatch) == "{}\n"
    assert "warning: the study was not tracked in MLflow: " in capfd.readouterr().err


def test_mlflow_is_imported_only_for_a_store():
    code = "import sys, mcgrpo.tracking; print('mlflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
