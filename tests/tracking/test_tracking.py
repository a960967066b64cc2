import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from cells import cell, write_cells
from mlflow import MlflowClient
from runs import RUN, write_sealed

from mcgrpo.analyse.records import Score
from mcgrpo.analyse.scored import write_scores
from mcgrpo.files import write_jsonl
from mcgrpo.study.paths import ResultFiles
from mcgrpo.tracking.__main__ import NOTE_LIMIT, comparisons, track

MEAN = replace(RUN, method="grpo", estimator="mean-std")
STARTED = 1_700_000_000.0
DATA = {"path": "resources/data/mini/sums.jsonl", "sha256": "ab" * 32, "rows": 12}


def train(results, run):
    """The files of a finished training of three steps and 12 seconds."""
    folder = results.run(run.name)
    outcome = {"status": "finished", "started": STARTED, "seconds": 12.0, "steps": 3, "data": DATA}
    outcome |= {"commit": "abc-dirty", "device": "cpu"}
    write_sealed(folder / "run.json", {**asdict(run), "outcome": outcome})
    steps = [{"step": n, "time": STARTED + n, "loss": 1 / n, "drawn/reward": n / 4, "epoch": n} for n in (1, 2, 3)]
    write_jsonl(folder / "metrics.jsonl", steps)
    write_jsonl(folder / "rollouts.jsonl", [{"prompt": "1+1", "completion": "2", "kept": True}])


def score(results, median=0.75):
    key = {name: getattr(RUN, name) for name in ("setting", "num_generations", "variant", "seed")}
    each = {"benchmark": "sums", "role": "in", "n": 4}
    rows = [Score(**key, **each, method=method, measure="avg@4", value=value, decoding="sampled")
            for method, value in {"grpo": 0.5, "mc-grpo": median}.items()]  # fmt: skip
    write_scores(results.scores, rows)


def summarise(results):
    more = {"setting": "toy", "half": 0.1, "n": 4, "seeds": 1, "measure": "avg@4"}
    rows = [cell("grpo", 4, 0.5, **more), cell("mc-grpo", 4, 0.75, gain=(0.25, -0.1, 0.6), **more)]
    write_cells(results, [*rows, cell("none", 0, 0.25, **more), cell("dapo", 2, setting="toy")])


@pytest.fixture
def results(tmp_path):
    """A study of two trainings at G=4, the mean and the median, with its scores, summary and report."""
    results = ResultFiles(tmp_path / "results/mini")
    for run in (RUN, MEAN):
        train(results, run)
    score(results)
    summarise(results)
    (tmp_path / "reports/figures").mkdir(parents=True)
    (tmp_path / "reports/figures/one.png").write_bytes(b"png")
    (tmp_path / "reports/.tables.md.x1.tmp").write_text("being written")
    return results


@pytest.fixture
def tracked(uri, results, tmp_path):
    """A call that tracks the study, and returns its runs in MLflow by name."""

    def call():
        call.said = track(uri, "mini", results, tmp_path / "reports")
        call.client = client = MlflowClient(uri)
        call.experiment = client.get_experiment_by_name("mini")
        runs = client.search_runs([call.experiment.experiment_id])
        assert {run.info.status for run in runs} == {"FINISHED"}
        named = {run.info.run_name: run for run in runs}
        assert len(named) == len(runs)
        return named

    return call


def test_a_training_is_a_run_with_its_curves_accuracies_data_set_and_times(tracked):
    run = tracked()["G4 MC-GRPO seed3 toy"]
    assert (run.info.start_time, run.info.end_time) == (STARTED * 1000, STARTED * 1000 + 12_000)
    history = tracked.client.get_metric_history(run.info.run_id, "curve/reward")
    assert [(point.step, point.value, point.timestamp) for point in history] == [
        (n, n / 4, STARTED * 1000 + n * 1000) for n in (1, 2, 3)
    ]
    assert run.data.metrics == {"curve/reward": 0.75, "curve/loss": 1 / 3, "accuracy/sums/avg_at_4": 0.75}
    names = {"setting": "toy", "method": "mc-grpo", "G": "4", "variant": "default", "seed": "3"}
    assert names.items() <= run.data.tags.items() and names.items() <= run.data.params.items()
    assert run.data.tags["commit"] == "abc-dirty" and run.data.params["learning_rate"] == "0.0002"
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("sums", "ab" * 8)
    assert [file.path for file in tracked.client.list_artifacts(run.info.run_id)] == ["rollouts.json"]


def test_the_seeds_of_a_cell_are_grouped_below_its_mean_interval_and_gain_and_tables_are_artifacts(tracked):
    runs = tracked()
    parent = runs["G4 MC-GRPO toy"]
    expected = {"accuracy/sums/avg_at_4": 0.75, "accuracy/sums/avg_at_4_low": 0.65, "gain/sums/avg_at_4": 0.25}
    expected |= {"gain/sums/avg_at_4_low": -0.1, "gain/sums/avg_at_4_high": 0.6, "seeds": 1}
    assert expected.items() <= parent.data.metrics.items()
    assert runs["G4 MC-GRPO seed3 toy"].data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert runs["untrained toy"].data.metrics["accuracy/sums/avg_at_4"] == 0.25
    assert runs.keys() == {
        "G4 GRPO toy", "G4 GRPO seed3 toy", "G4 MC-GRPO toy", "G4 MC-GRPO seed3 toy", "untrained toy",
        "tables and figures",
    }  # fmt: skip
    tables = tracked.client.list_artifacts(runs["tables and figures"].info.run_id, "figures")
    assert [file.path for file in tables] == ["figures/one.png"]
    assert [each.path for each in tracked.client.list_artifacts(runs["tables and figures"].info.run_id)] == ["figures"]
    note = tracked.experiment.tags["mlflow.note.content"]
    ids = ",".join(f"%22{runs[name].info.run_id}%22" for name in ("G4 GRPO seed3 toy", "G4 MC-GRPO seed3 toy"))
    assert f"[G4 MC-GRPO and GRPO toy](#/compare-runs?runs=[{ids}]&experiments=[%22" in note


def test_the_links_of_a_large_study_are_short_enough_for_mlflow():
    """Those of the smallest G are kept."""
    seeds = ["0" * 32] * 40
    ids = {f"toy{n}/{method}/G{g}/default": seeds
           for n in range(5) for g in (16, 2) for method in ("grpo", "mc-grpo")}  # fmt: skip
    text = comparisons(ids, "1")
    assert len(text) < NOTE_LIMIT and text.count("G2 ") == 5 and "G16" not in text


def test_tracked_again_only_what_has_changed_or_was_interrupted_is_written(tracked, results):
    first = {name: run.info.run_id for name, run in tracked().items()}
    assert "6 runs written" in tracked.said
    assert {name: run.info.run_id for name, run in tracked().items()} == first
    assert "0 runs written" in tracked.said
    score(results, median=1.0)
    tracked.client.update_run(first["G4 GRPO seed3 toy"], "RUNNING")
    second = tracked()
    assert second["G4 MC-GRPO seed3 toy"].data.metrics["accuracy/sums/avg_at_4"] == 1.0
    anew = {name for name, run in second.items() if run.info.run_id != first[name]}
    assert "2 runs written" in tracked.said and anew == {"G4 MC-GRPO seed3 toy", "G4 GRPO seed3 toy"}


def test_an_experiment_that_was_deleted_is_restored(tracked, results):
    runs = tracked()
    tracked.client.delete_experiment(tracked.experiment.experiment_id)
    train(results, replace(RUN, seed=4))
    assert tracked().keys() == runs.keys() | {"G4 MC-GRPO seed4 toy"}


def test_completions_that_are_numbers_stay_text(tracked, results):
    write_jsonl(results.run(RUN.name) / "rollouts.jsonl", [{"prompt": "3+4", "completion": "007", "reward": 1.0}])
    run = tracked()["G4 MC-GRPO seed3 toy"].info
    table = Path(tracked.client.download_artifacts(run.run_id, "rollouts.json"))
    assert json.loads(table.read_text())["data"] == [["3+4", "007", 1.0]]


def test_during_a_study_what_is_finished_is_there_and_grouped_later(tracked, results):
    results.summary.unlink()
    results.scores.unlink()
    runs = tracked()
    parent = runs["G4 GRPO seed3 toy"].data.tags["mlflow.parentRunId"]
    assert parent == runs["G4 GRPO toy"].info.run_id and "tables and figures" not in runs
    score(results)
    summarise(results)
    runs = tracked()
    assert runs["G4 GRPO seed3 toy"].data.tags["mlflow.parentRunId"] == runs["G4 GRPO toy"].info.run_id != parent


def test_a_training_with_wrong_files_is_named_and_the_others_are_tracked(tracked, results, capsys):
    (results.run(RUN.name) / "metrics.jsonl").write_text('{"step": 1}\n')
    assert "G4 GRPO seed3 toy" in tracked() and "G4 MC-GRPO seed3 toy" not in tracked()
    assert f"warning: not tracked: {results.run(RUN.name)}/metrics.jsonl:1: a row needs step" in capsys.readouterr().err


def test_a_store_that_cannot_be_reached_is_one_line(results, tmp_path):
    command = [sys.executable, "-m", "mcgrpo.tracking", "--results", results.folder, "--reports", tmp_path]
    environment = {**os.environ, "MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: not tracked in MLflow (http://127.0.0.1:9): ")


def test_more_metrics_than_mlflow_accepts_at_once_are_all_logged(tracked, results):
    steps = [{"step": n, "time": STARTED + n, "loss": 1.0, "kl": float("nan")} for n in range(1, 2001)]
    write_jsonl(results.run(RUN.name) / "metrics.jsonl", steps)
    run = tracked()["G4 MC-GRPO seed3 toy"]
    assert len(tracked.client.get_metric_history(run.info.run_id, "curve/loss")) == 2000
