"""Runs, grades and metrics as `mcgrpo.analyse.collect` reads them."""

from dataclasses import asdict, replace

from runs import RUN, write_sealed

from mcgrpo.analyse.records import LOGGED
from mcgrpo.files import write_jsonl
from mcgrpo.records import Grade, Group

VERDICTS = {
    "greedy": {"a": ["correct"], "b": ["equivalent"], "c": ["wrong"], "d": ["timeout"]},
    "sampled": {
        "a": ["correct", "wrong"],
        "b": ["equivalent", "equivalent"],
        "c": ["unparseable", "error"],
        "d": ["correct", "correct"],
    },
}


def grades():
    return [
        Grade(id, sample, None, verdict, decoding)
        for decoding, problems in VERDICTS.items()
        for id, each in problems.items()
        for sample, verdict in enumerate(each)
    ]


def a_run(method="grpo", seed=0):
    training = {"beta": 0.04, "per_device_train_batch_size": 8, "max_steps": 20}
    trained = {"estimator": "mean-std", "training": training}
    none = {"num_generations": 0, "loss_type": "", "estimator": "", "rewards": {}, "training": {}}
    return replace(RUN, method=method, seed=seed, **(none if method == "none" else trained))


def metrics(steps=20, **changed):
    """20 steps: the reward is step / 20 (of the first rollouts step / 10), every other column 0.5.

    `changed` holds {step: value} per column.
    """
    rows = []
    for step in range(1, steps + 1):
        values = dict.fromkeys(LOGGED, 0.5) | {"reward": step / 20, "reward_first": step / 10}
        values |= {column: each[step] for column, each in changed.items() if step in each}
        rows.append({"step": step} | {LOGGED[column]: value for column, value in values.items()})
    return rows


def write_run(results, run, rows, status="finished", started=0.0):
    outcome = {"status": status, "seconds": 12.5, "started": started, "steps": len(rows)}
    outcome |= {"data": {"path": "data.jsonl", "sha256": "aaa", "rows": 960}}
    write_sealed(results / "runs" / run.name / "run.json", asdict(run) | {"outcome": outcome})
    write_jsonl(results / "runs" / run.name / "metrics.jsonl", rows)
    none, size = [], run.num_generations
    write_jsonl(results / "runs" / run.name / "groups.jsonl", [Group(1, 0, size * [0.0], size * [0.0], none, none)])
