"""Steps that are timed in turns."""

import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, replace
from itertools import product

import pytest
from training_jobs import RUN, changed

from mcgrpo.files import read_jsonl
from mcgrpo.records import StepTime
from mcgrpo.train import step_times
from mcgrpo.trainer.trainer import MCGRPOTrainer

METHODS = {"grpo": "mean-std", "mc-grpo": "median-mad"}
RUNS = [
    replace(RUN, method=method, estimator=estimator, seed=seed)
    for method, estimator in METHODS.items()
    for seed in range(12)
]
MORE = [*RUNS, *(replace(run, num_generations=8) for run in RUNS)]


def test_seeds_are_rounds_in_which_compared_methods_follow_one_another_in_an_order_that_is_drawn():
    every = list(step_times.in_turns(MORE))
    repeats = [every[start : start + len(MORE)] for start in range(0, len(every), len(MORE))]
    assert len(repeats) == step_times.REPEATS > 1
    for turns in repeats:
        assert sorted(run.name for run in turns) == sorted(run.name for run in MORE)
        assert_in_turns(turns)
    assert repeats[0] != repeats[1]
    assert every == list(step_times.in_turns(reversed(MORE)))


def assert_in_turns(turns):
    pairs = [turns[start : start + 2] for start in range(0, len(turns), 2)]
    assert [{run.seed for run in pair} for pair in pairs] == [{seed} for seed in range(12) for _ in "28"]
    assert all(first.num_generations == second.num_generations for first, second in pairs)
    assert {(first.method, first.num_generations) for first, _ in pairs} == set(product(METHODS, (2, 8)))
    assert {first.num_generations for first, _ in pairs[::2]} == {2, 8}


def test_of_a_step_that_is_timed_again_the_least_time_counts():
    times = [StepTime("a", 2, 3.0), StepTime("b", 2, 1.0), StepTime("a", 2, 2.0), StepTime("a", 3, 5.0)]
    assert step_times.least(times) == [StepTime("a", 2, 2.0), StepTime("b", 2, 1.0), StepTime("a", 3, 5.0)]


@pytest.mark.parametrize(
    ("training", "steps"),
    [
        ({"num_iterations": 1}, [1, 2]),
        ({"num_iterations": 2}, [1, 2, 3, 4]),
        ({"steps_per_generation": 2}, [1, 2, 3, 4]),
        ({"gradient_accumulation_steps": 2, "steps_per_generation": 1}, [1, 2]),
    ],
)
def test_as_many_steps_draw_rollouts_as_in_a_whole_training(inputs, training, steps):
    run = changed(**training, max_steps=100)
    begun = time.process_time()
    rows = list(step_times.timed(run, inputs / "model", inputs / "data.jsonl", steps=2))
    assert [(row.run, row.step) for row in rows] == [(run.name, step) for step in steps]
    assert 0 < sum(row.seconds for row in rows) < time.process_time() - begun


def test_a_step_in_which_the_process_sleeps_takes_no_longer(inputs, monkeypatch):
    def seconds():
        return max(row.seconds for row in step_times.timed(RUN, inputs / "model", inputs / "data.jsonl", steps=2))

    awake = seconds()
    own, slept = MCGRPOTrainer.compute_loss, []
    monkeypatch.setattr(MCGRPOTrainer, "compute_loss", lambda *a, **k: (slept.append(time.sleep(1)), own(*a, **k))[1])
    assert seconds() < awake + 0.5 and len(slept) == 2


@pytest.mark.parametrize("processes", [1, 2, 9])
def test_every_seed_of_every_cell_is_timed(processes, inputs, tmp_path, monkeypatch):
    cells = [
        {"run": asdict(replace(RUN, method=method, estimator=METHODS[method])), "seeds": [5, 7]} for method in METHODS
    ]
    given = {
        "cells": json.dumps(cells), "steps": 1, "model": inputs / "model", "data": inputs / "data.jsonl",
        "processes": processes, "output": tmp_path / "times.jsonl",
    }  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["step_times", *(part for k, v in given.items() for part in (f"--{k}", str(v)))])
    trained, own = tmp_path / "trained", step_times.timed

    def timed(run, *others):
        with trained.open("a") as file:
            file.write(f"{os.getpid()} {run.name}\n")
        return own(run, *others)

    monkeypatch.setattr(step_times, "timed", timed)
    step_times.main()
    rows = read_jsonl(given["output"], StepTime)
    names = [f"toy/{method}/G2/default/seed{seed}" for method in METHODS for seed in (5, 7)]
    assert sorted((row.run, row.step) for row in rows) == sorted((name, 1) for name in names)
    warmed, *timings = [line.split() for line in trained.read_text().splitlines()]
    assert Counter(name for _, name in timings) == Counter(names * step_times.REPEATS)
    assert warmed[0] not in {process for process, _ in timings}, "the first one warms up, before the process is forked"
    of_seed = {name.rpartition("/")[2]: process for process, name in timings}
    assert len({(process, name.rpartition("/")[2]) for process, name in timings}) == 2, "all of a seed in one process"
    assert processes == 1 or len({*of_seed.values()}) == 2
