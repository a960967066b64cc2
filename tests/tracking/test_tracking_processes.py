import os
import signal
import subprocess
import sys
import urllib.request
from dataclasses import replace

import pytest
from learning_trainings import HERE, command
from pretend_machine import wait_until
from studies import ROOT
from tracked_files import track
from training_jobs import RUN, changed, job, make_inputs, steps

from mcgrpo.launch.server import free_port
from mcgrpo.tracking import FOLLOWED
from mcgrpo.tracking.series import STEP_METRICS
from mcgrpo.tracking.store import Store

pytestmark = pytest.mark.slow
EIGHT = changed(max_steps=8)

JOBS = 4
WRITER = """
import dataclasses, json, shutil, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import tracked_files as files
from mcgrpo import tracking
from mcgrpo.train import attempts
from mcgrpo.tracking import tracked
from mcgrpo.tracking.series import STEP_METRICS
tracking.FOLLOWER_SECONDS = 600  # eight processes start at once
run = dataclasses.replace(files.RUN, seed=int(sys.argv[2]))
place = files.place(Path("results"), run)
logs = [dict.fromkeys(STEP_METRICS, float(step)) for step in range(1, 31)]
with attempts.alone(place.unfinished):
    files.write(place.unfinished, run, logs[:1], status="running")
    with tracked(place.unfinished, place.finished):
        for row, log in enumerate(logs[1:], 2):
            time.sleep(0.1)
            with (place.unfinished / "metrics.jsonl").open("a") as file:
                file.write(json.dumps({"step": row, "time": time.time(), **log}) + "\\n")
        shutil.copytree(place.unfinished, place.finished)
        record = json.loads((place.finished / "run.json").read_text())
        record["outcome"]["status"] = "finished"
        (place.finished / "run.json").write_text(json.dumps(record))
        (place.unfinished / "run.json").unlink()
"""


def environment(uri):
    return {key: value for key, value in os.environ.items() if key != FOLLOWED} | {"MLFLOW_TRACKING_URI": uri}


def client_of(uri):
    from mlflow import MlflowClient  # seconds, which the fast tests do not need

    return MlflowClient(uri)


def test_jobs_at_once_lose_nothing(tmp_path):
    """Four processes and their followers, one sqlite store that is not there yet."""
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    command = [sys.executable, "-c", WRITER, str(ROOT / "tests/support")]
    places = {"cwd": tmp_path, "env": environment(uri), "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, str(seed)], **places) for seed in range(JOBS)]
    said = [writer.communicate(timeout=1200)[1] for writer in writers]
    assert not any(writer.returncode for writer in writers), said
    assert not [line for line in said if "warning" in line]
    client = client_of(uri)
    found = client.search_runs([client.get_experiment_by_name("mini").experiment_id])
    assert sorted(run.data.params["seed"] for run in found) == [str(seed) for seed in range(JOBS)]
    for run in found:
        names = [name for name in run.data.metrics if not name.startswith("system/")]
        assert run.info.status == "FINISHED" and set(names) == STEP_METRICS
        for name in names:
            points = [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, name)]
            assert sorted(points) == [(step, float(step)) for step in range(1, 31)], name


class Server:
    """A real `mlflow server` on a sqlite store, without the five processes that run its jobs."""

    def __init__(self, folder, store):
        self.folder, self.store = folder, store
        self.port = free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "mlflow", "server", "--port", str(self.port), "--workers", "1"]
        command += ["--backend-store-uri", self.store]
        command += ["--default-artifact-root", str(self.folder / "artifacts")]
        with (self.folder / "server.log").open("a") as log:
            options = {"stdout": log, "stderr": log, "start_new_session": True}
            settings = environment("") | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
            self.process = subprocess.Popen(command, **options, env=settings)
        assert wait_until(self.answers), (self.folder / "server.log").read_text()

    def answers(self):
        try:
            return urllib.request.urlopen(f"{self.uri}/health", timeout=2).read()
        except OSError:
            return b""

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path, uri):
    server = Server(tmp_path, uri)
    server.start()
    yield server
    server.kill()


def started(made, uri):
    """A training on its own, which waits after its first step until the file `go` is beside its inputs."""
    settings = HERE | {"HOLD": str(made.home / "metrics.jsonl"), "GO": str(made.data.with_name("go"))}
    settings = {key: value for key, value in settings.items() if key != FOLLOWED} | {"MLFLOW_TRACKING_URI": uri}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(made), env=settings, start_new_session=True, **pipes)


def history(client):
    (run,) = client.search_runs([client.get_experiment_by_name(RUN.study).experiment_id])
    return run, [m.step for m in client.get_metric_history(run.info.run_id, "loss")]


def tracked_so_far(client):
    found = client.get_experiment_by_name(RUN.study)
    return found and client.search_runs([found.experiment_id], "metrics.loss > -1e9")


def in_study(tmp_path):
    """A job whose files lie as those of a study do."""
    made, run = job(make_inputs(tmp_path), tmp_path, EIGHT, save_steps=100), EIGHT
    results = tmp_path / "results" / RUN.study
    return replace(made, output=results / "runs" / run.name, unfinished=results / "unfinished" / run.name)


def test_a_server_that_is_killed_costs_a_warning_and_track_mends_it(server, tmp_path, monkeypatch):
    made = in_study(tmp_path)
    training = started(made, server.uri)
    client = client_of(server.uri)
    assert wait_until(lambda: tracked_so_far(client))
    server.kill()
    at_kill = len(steps(made.home))
    made.data.with_name("go").touch()
    _, said = training.communicate(timeout=600)
    assert training.returncode == 0, said
    assert at_kill < len(steps(made.output)) == 8
    assert said.count("was not tracked in MLflow: ") == 1
    server.start()
    run, before = history(client)
    assert run.info.status == "RUNNING" and len(before) == at_kill
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    track(made.output.parents[5], monkeypatch)
    mended, after = history(client)
    assert (mended.info.run_id, mended.info.status) == (run.info.run_id, "FINISHED")
    assert after == list(range(1, 9))


def test_a_training_that_is_killed_outright_is_killed_in_the_store(tmp_path, uri):
    made = in_study(tmp_path)
    client = Store(uri, RUN.study).client
    training = started(made, uri)
    assert wait_until(lambda: tracked_so_far(client))
    assert history(client)[0].info.status == "RUNNING"
    training.kill()
    training.wait()
    assert wait_until(lambda: history(client)[0].info.status == "KILLED")
    assert history(client)[1] == [row["step"] for row in steps(made.home)]
