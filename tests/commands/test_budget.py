"""The part of a study that decides most claims within a budget: its power by simulation, its overlay by the planner."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import studies

from mcgrpo.analyse.crossed import Weighted, contrast
from mcgrpo.analyse.records import Cell, Gain
from mcgrpo.commands.doctor.demands import TIGHT
from mcgrpo.commands.forecast.__main__ import forecasts, main, rows
from mcgrpo.commands.forecast.batches import batches
from mcgrpo.commands.forecast.budget import choose
from mcgrpo.commands.forecast.effects import Spread, smallest_gain
from mcgrpo.commands.forecast.memory import GIB, memory
from mcgrpo.commands.forecast.power import measured_spread
from mcgrpo.commands.forecast.sizes import Model, Sizes
from mcgrpo.commands.forecast.within import overlay, within, write
from mcgrpo.study import read as study_file
from mcgrpo.study.check import StudyError
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import expand

ROOT = Path(__file__).parents[2]
PAPER = studies.load("config")
OFFLINE = Sizes({name: Model() for name in PAPER["models"]}, {name: {} for name in PAPER["datasets"]})


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Without results: times are the paper's."""
    monkeypatch.chdir(tmp_path)


@cache
def options(*claims):
    return within(PAPER, OFFLINE, Spread(), 0, claims)


def plan(budget, *claims):
    """As `within`, but what each claim needs is found once for all budgets."""
    found = options(*claims)
    return found._replace(choice=choose(found.options, found.needed, found.hours, budget))


def option(claim, setting="qwen3-1.7b-gsm8k"):
    return next(each for each in options().options if (each.claim.id, each.setting) == (claim, setting))


@pytest.mark.slow
def test_a_claim_that_is_asked_for_alone_is_decided_as_among_all():
    alone = within(PAPER, OFFLINE, Spread(), 40, ["grpo-gains"])
    assert plan(40, "grpo-gains") == alone
    assert [each for each in options().options if each.claim.id == "grpo-gains"] == alone.options


@pytest.mark.slow
def test_a_claim_on_one_gain_detects_what_a_gain_does():
    of = option("up-to-4.62-on-gsm8k")
    assert of.detectable(5, Spread()) == pytest.approx(100 * smallest_gain(5, 1319, Spread()))
    assert of.value == 4.62


@pytest.mark.parametrize(("claim", "seeds"), [("grpo-gains", 3), ("gap-narrowed", 8), ("gap-within-1", 5)])
def test_power_is_how_often_the_claims_own_test_decides(claim, seeds):
    """Studies whose truth is what the paper prints, judged over seeds and problems."""
    of, spread, number = option(claim), Spread(), 300
    generator, decided = np.random.default_rng(1), 0
    weights = np.array(list(of.weights.values()))
    for _ in range(number):
        cells = len(weights)
        values = spread.seeds * generator.normal(size=(cells, seeds, 1))
        values = values + spread.problems * generator.normal(size=(cells, 1, 1319))
        values = values + spread.disagreement**0.5 * generator.normal(size=(cells, seeds, 1319))
        mixed = np.tensordot(weights / 2**0.5, values, 1) + of.value / 100
        estimate = contrast([{"problems": Weighted(mixed)}])
        tails = [
            estimate.p_value(bound / 100, "greater" if of.value > bound else "less")
            for bound in (of.comparison.low, of.comparison.high)
            if np.isfinite(bound)
        ]
        holds = of.comparison.holds_at(of.value)
        decided += max(tails) <= 0.025 if holds else min(tails[i] for i in beyond(of)) <= 0.025
    assert decided / number == pytest.approx(of.power(seeds, spread), abs=0.08)


def beyond(of):
    """Which of its finite bounds the value is outside of."""
    low, high = of.comparison.low, of.comparison.high
    sides = [of.value <= low] * bool(np.isfinite(low)) + [of.value >= high] * bool(np.isfinite(high))
    return [i for i, outside in enumerate(sides) if outside]


def test_without_any_spread_every_claim_is_decided():
    assert option("grpo-gains").power(3, Spread(0.0, 0.0, 0.0)) == 1


def test_more_seeds_have_more_power_and_detect_less():
    of = option("grpo-gains")
    powers = [of.power(seeds, Spread()) for seeds in range(2, 9)]
    assert powers == sorted(powers)
    assert of.detectable(8, Spread()) < of.detectable(3, Spread())


def test_that_a_maximum_is_not_reached_in_one_setting_decides_nothing():
    assert option("up-to-4.62-on-gsm8k", "llama-3.2-3b-gsm8k").power(20, Spread()) == 0


@pytest.mark.parametrize("budget", [5, 40, 150])
def test_the_choice_keeps_to_the_budget_and_decides_what_it_says(budget):
    found = plan(budget)
    assert found.choice.hours <= budget
    for of, seeds in found.choice.decided.values():
        assert of.power(seeds, Spread()) >= 0.8
        assert all(found.choice.seeds[cell] >= seeds for cell in of.cells)
    used = {cell for of, _ in found.choice.decided.values() for cell in of.cells}
    assert used == found.choice.seeds.keys()


def test_a_larger_budget_decides_more():
    counts = [len(plan(budget).choice.decided) for budget in (1, 40, 150, 600)]
    assert counts[0] == 0 and counts == sorted(set(counts))


@pytest.mark.parametrize(("budget", "claims"), [(45, []), (100, ["ood"]), (60, ["composite-gains", "grpo-gains"])])
def test_the_overlay_trains_exactly_what_is_chosen(budget, claims):
    found = plan(budget, *claims)
    write(Path("part.yaml"), PAPER, found, Spread(), [])
    config = study_file.read([ROOT / "config/config.yaml", "part.yaml"])
    trained = [entry.run for entry in expand(config).values() if entry.run.method != UNTRAINED]
    cells = [(run.setting, run.method, run.num_generations, run.variant) for run in trained]
    assert {cell: cells.count(cell) for cell in cells} == found.choice.seeds
    *_, total = rows(config, forecasts(config, OFFLINE))
    assert total["device_hours"] == pytest.approx(found.choice.hours)
    assert total["times"] == {"published": len(cells)}
    if "ood" in claims:
        assert all("out" in entry.roles for entry in expand(config).values())


def test_an_overlay_over_another_takes_no_names_of_it():
    """Snakemake merges experiments of one name key by key."""
    write(Path("part.yaml"), PAPER, plan(100, "ood"), Spread(), [])
    config = study_file.read([ROOT / "config/config.yaml", "part.yaml"])
    chosen = within(config, OFFLINE, Spread(), 100, ["ood"]).choice
    added = {name for name, experiment in overlay(config, chosen)["experiments"].items() if experiment}
    assert added and not added & config["experiments"].keys()


@pytest.mark.slow
def test_as_commands_in_an_empty_folder(tmp_path):
    paper, part = str(ROOT / "config/config.yaml"), str(tmp_path / "part.yaml")
    call = [sys.executable, "-m", "mcgrpo.cli"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HF_ENDPOINT": "http://127.0.0.1:9"}

    def run(*arguments):
        return subprocess.run([*call, *arguments], capture_output=True, text=True, cwd=tmp_path, env=environment)

    planned = run("plan", paper, "--budget", "20", "--claims", "grpo-gains", "--output", part)
    assert planned.returncode == 0, planned.stderr
    assert "1 of 1 claims for 17.3 GPU-hours" in planned.stdout
    total = next(line for line in run("plan", paper, part).stdout.splitlines() if line.startswith("total"))
    assert total.split()[1] == "16" and " 17.3 " in total
    doctor = run("doctor", paper, part)
    assert "qwen3-1.7b-gsm8k" in doctor.stdout and "llama" not in doctor.stdout and "Traceback" not in doctor.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--budget", "20", "--claims", "grpo-gain"], "--claims grpo-gain: no such claim"),
        (["--budget", "1", "--output", "part.yaml"], "decides no claim"),
    ],
)
def test_what_decides_nothing_is_refused(options, told, monkeypatch):
    monkeypatch.setattr("sys.argv", ["plan", str(ROOT / "config/config.yaml"), *options])
    with pytest.raises(SystemExit, match=f"^error: .*{told}"):
        main()


def test_the_spread_of_a_finished_study_is_that_of_its_gains(tmp_path):
    generator, spread = np.random.default_rng(0), Spread(seeds=0.03)
    key = {"setting": "s", "method": "mc-grpo", "num_generations": 2, "benchmark": "b", "role": "in"}
    sd = (spread.seeds**2 + spread.disagreement / 512) ** 0.5
    gains, cells = [], []
    for variant in "abcdefgh":
        cells.append({**key, "variant": variant, "measure": "greedy", "n": 512, "planned": 30, "seeds": 30})
        for seed, gain in enumerate(generator.normal(0.02, sd, size=30)):
            gains.append({**key, "variant": variant, "measure": "greedy", "kind": "difference", "baseline": "grpo"})
            gains[-1] |= {"seed": seed, "gain": gain}
    for name, kind, table in (("gains", Gain, gains), ("summary", Cell, cells)):
        pd.DataFrame(table, columns=list(kind.__dataclass_fields__)).to_csv(tmp_path / f"{name}.csv", index=False)
    measured, freedom = measured_spread(tmp_path, Spread())
    assert freedom == 8 * 29
    assert measured.seeds == pytest.approx(0.03, rel=0.15)
    assert measured.problems == Spread().problems


def test_one_gpu_trains_the_papers_batches_in_half_a_day_on_80_gib():
    """Of Qwen3-1.7B's published shape; GPU-hours are the paper's."""
    config = study_file.read([ROOT / "config/config.yaml", ROOT / "config/one-gpu.yaml"])
    trained = [entry.run for entry in expand(config).values() if entry.run.method != UNTRAINED]
    assert {run.method for run in trained} == {"grpo", "grpo-plus1", "mc-grpo"} and len(trained) == 15
    paper = expand(PAPER)
    for run in trained:
        ours, theirs = batches(run, 1, 7473), batches(paper[run.name].run, 2, 7473)
        assert ours.rows * ours.accumulation == theirs.rows * theirs.processes * theirs.accumulation == 32
        assert ours.steps == theirs.steps
    *_, total = rows(config, forecasts(config, OFFLINE))
    assert total["device_hours"] == pytest.approx(5 * 2 * (1316 + 2 * 1521) / 3600)
    assert total["times"] == {"scaled": 15}
    qwen = Model(parameters=2_031_739_904, hidden_size=2048, layers=28, vocabulary=151_936)
    assert memory(trained[0].training, qwen, batches(trained[0], 1, 7473)).device < TIGHT * 79.6 * GIB  # of an H100


def test_null_leaves_out_an_experiment_of_the_file_below(tmp_path):
    (tmp_path / "less.yaml").write_text("experiments: {main: null}\n")
    config = study_file.read([ROOT / "config/config.yaml", tmp_path / "less.yaml"])
    assert "main" not in config["experiments"] and "control" in config["experiments"]
    (tmp_path / "none.yaml").write_text(
        "experiments: {" + ", ".join(f"{n}: null" for n in PAPER["experiments"]) + "}\n"
    )
    with pytest.raises(StudyError, match="experiments"):
        study_file.read([ROOT / "config/config.yaml", tmp_path / "none.yaml"])
