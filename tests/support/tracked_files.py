"""The files of a training as `mcgrpo.train` writes them, without any training."""

from dataclasses import asdict

from runs import RUN

from mcgrpo.files import write_json, write_jsonl
from mcgrpo.tracking import __main__
from mcgrpo.tracking.sync import Place

DATA = {"path": "resources/data/mini/sums.jsonl", "sha256": "ab" * 32, "rows": 12}
OUTCOME = {"status": "finished", "started": 1_700_000_000.25, "commit": "abc-dirty", "device": "cpu", "data": DATA}
LOGS = [{"loss": 0.5 / step, "drawn/reward": step / 4, "odd@2": step, "grad_norm": 1.0} for step in (1, 2, 3)]
LOGS[1]["grad_norm"] = float("nan")


def place(results, run=RUN):
    return Place(results / "unfinished" / run.name, results / "runs" / run.name)


def write(folder, run=RUN, logs=LOGS, samples=1, begun=1_700_000_010.0, **outcome):
    """The files of a training in a folder; the logs are those of its first steps."""
    rows = [{"step": step, "time": begun + step, **row} for step, row in enumerate(logs, 1)]
    write_jsonl(folder / "metrics.jsonl", rows)
    system = {"system/cpu_utilization_percentage": 50.0}
    write_jsonl(folder / "system.jsonl", [{"step": n, "time": begun + n, **system} for n in range(samples)])
    write_json(folder / "run.json", asdict(run) | {"outcome": OUTCOME | outcome})


def finish(where, **outcome):
    """As `mcgrpo.train` does at the end."""
    write(where.finished, **outcome)
    (where.unfinished / "run.json").unlink()


def content(store, run):
    """All that MLflow holds of a run, but for its id; metrics as (step, value, time)."""
    metrics = {
        name: sorted((m.step, m.value, m.timestamp) for m in store.client.get_metric_history(run.info.run_id, name))
        for name in run.data.metrics
    }
    info = {name: getattr(run.info, name) for name in ("run_name", "status", "start_time", "end_time")}
    datasets = [each.to_dictionary() for each in run.inputs.dataset_inputs]
    tags = {name: value for name, value in run.data.tags.items() if name != "mlflow.parentRunId"}
    return {"info": info, "params": run.data.params, "tags": tags, "metrics": metrics, "datasets": datasets}


def only(store):
    """The one run of a store."""
    (run,) = store.search()
    return run


def steps(store, metric="loss"):
    """The steps that the one run has of a metric."""
    return [step for step, *_ in content(store, only(store))["metrics"][metric]]


def track(results, monkeypatch, *options):
    monkeypatch.setattr("sys.argv", ["track", str(results), *options])
    __main__.main()
