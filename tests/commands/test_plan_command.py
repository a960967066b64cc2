"""What a study will take. Its steps are held against real trainings in `test_evidence_rollouts`."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import studies

from mcgrpo.commands.plan.__main__ import Forecast, forecasts, main, notes, rows, steps
from mcgrpo.commands.plan.times import Time
from mcgrpo.files import write_json
from mcgrpo.study.estimators import drawn
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import expand

ROOT = Path(__file__).parents[2]
MINI, PAPER = studies.load("mini"), studies.load("config")


def trainings(config):
    return {name: entry.run for name, entry in expand(config).items() if entry.run.method != UNTRAINED}


def finish(run, seconds, **outcome):
    """What a finished training leaves."""
    record = {**asdict(run), "outcome": {"status": "finished", "seconds": seconds, "steps": 40, **outcome}}
    write_json(Path("results", run.study, "runs", run.name, "run.json"), record)


def forecast(config):
    """Experiment -> row; `total` is the last."""
    return {row["experiment"]: row for row in rows(config, forecasts(config))}


def times(config):
    """Run -> its time, as seconds and source."""
    return {name: each.time for name, each in forecasts(config).items()}


def test_every_training_counts_once_in_the_first_experiment_that_asks_for_it(here):
    found = forecast(MINI)
    total = found.pop("total")
    assert sum(row["to_train"] for row in found.values()) == total["to_train"] == len(trainings(MINI))
    counts = {name: [found[name][key] for key in ("trainings", "shared", "to_train")] for name in ("main", "ood")}
    own, shared = (
        4 * 3 * 2,
        2 * 3 * 2,
    )  # two seeds; GRPO and MC-GRPO are shared with headline
    ood = 4 * len(MINI["seeds"])
    assert counts == {"main": [own + shared, shared, own], "ood": [ood, ood, 0]}


def test_what_has_finished_is_not_counted_again(here):
    run = trainings(MINI)["toy-qwen3/grpo/G2/default/seed0"]
    finish(run, 20.0)
    first = forecast(MINI)["headline"]
    assert (first["trainings"], first["finished"], first["to_train"]) == (45, 1, 44)
    assert forecast(studies.changed(MINI, {"training": {"learning_rate": 1e-4}}))["headline"]["finished"] == 0
    finish(run, 20.0, status="failed")
    assert forecast(MINI)["headline"]["finished"] == 0


def test_a_time_is_the_mean_of_trainings_of_the_same_work(here):
    for seed, seconds in enumerate((20.0, 30.0)):
        finish(trainings(MINI)[f"toy-qwen3/grpo/G2/default/seed{seed}"], seconds)
    found = times(MINI)
    for same in ("grpo/G2/default/seed2", "dapo/G2/default/seed0", "grpo/G2/composite/seed0"):
        assert found[f"toy-qwen3/{same}"] == Time(25.0, "measured")
    for other in ("mc-grpo/G2/default", "grpo/G4/default", "grpo/G2/best-on-test"):  # rollouts, G, evaluations
        assert found[f"toy-qwen3/{other}/seed0"] is None


def test_the_papers_times_are_those_of_its_own_settings_until_some_are_measured(here):
    found = times(PAPER)
    assert found["qwen3-1.7b-gsm8k/grpo/G2/default/seed4"] == Time(1316.0, "published")
    assert found["qwen2.5-7b-math/mc-grpo/G8/default/seed0"] == Time(27700.0, "published")
    assert found["qwen3-1.7b-gsm8k/dapo/G2/default/seed0"] == Time(1316.0, "published")
    assert found["qwen3-1.7b-gsm8k/grpo-plus1/G2/default/seed0"] == Time(1521.0, "published")
    for other in ("grpo/G2/released", "grpo/G4/update-matched"):
        assert found[f"qwen3-1.7b-gsm8k/{other}/seed0"] is None
    finish(trainings(PAPER)["qwen3-1.7b-gsm8k/grpo/G2/default/seed0"], 900.0)
    found = times(PAPER)
    assert found["qwen3-1.7b-gsm8k/dapo/G2/default/seed1"] == Time(900.0, "measured")


@pytest.mark.parametrize(
    "change",
    [{"gpus": 4}, {"training": {"max_completion_length": 512}}, {"training": {"max_steps": 100}}],
)
def test_another_study_has_not_the_papers_times(here, change):
    change = studies.changed(change, {"settings": {name: change for name in PAPER["settings"] if "training" in change}})
    config = studies.changed(PAPER, change)
    assert set(times(config).values()) == {None}


def test_what_is_not_known_is_no_zero(here):
    whole = forecast(PAPER)["total"]
    assert whole["steps"] and whole["times"] == {"published": 540, "unknown": 80}
    elsewhere = studies.changed(PAPER, {"datasets": {"gsm8k": {"hub": "org/data"}}})
    assert forecast(elsewhere)["total"]["steps"] is None


@pytest.mark.parametrize(("at_once", "hours"), [(1, "19.0 hours, without 1"), (2, "9.5"), (9, "7.0")])
def test_wall_clock_is_the_work_shared_out_and_no_less_than_the_longest_training(at_once, hours):
    seconds = [3.0, 7.0, 5.0, 4.0, None]
    left = {str(each): Forecast(1, each and Time(3600 * each, "measured")) for each in seconds}
    assert f"{at_once} at a time: {hours}" in list(notes(left, at_once))[-1]


def test_the_batch_arithmetic_of_the_paper():
    run = trainings(PAPER)["qwen3-1.7b-gsm8k/mc-grpo/G4/default/seed0"]
    assert drawn(run) == 5
    assert steps(run, 2, 7473) == 7473 // 8 * 2  # 2 processes x 16 rows = 8 prompts x G=4, two iterations over each
    assert steps(run, 2, None) is None and steps(run, 2, 7) == 0


@pytest.fixture
def plan(here, monkeypatch, capsys):
    """What `mcgrpo plan` prints, in an empty folder."""

    def plan(*arguments):
        monkeypatch.setattr("sys.argv", ["mcgrpo plan", *map(str, arguments)])
        main()
        return capsys.readouterr().out

    return plan


def test_the_command_says_it_for_people_and_machines(plan):
    study = ROOT / "config/mini.yaml"
    finish(trainings(MINI)["toy-qwen3/grpo/G2/default/seed0"], 36.0)
    text = plan(study, "--cores", "2")
    assert "core-hours" in text and "Wall clock of the trainings, 2 at a time: " in text
    records = json.loads(plan(study, "--json"))
    assert records[-1]["experiment"] == "total" and records[-1]["trainings"] == len(trainings(MINI))
    assert records[0]["times"] == {"measured": 4, "unknown": 40} and records[0]["device_hours"] == 4 * 36 / 3600


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([ROOT / "config/none.yaml"], f"{ROOT / 'config/none.yaml'}: no such file"),
        ([ROOT / "config/config.yaml", "--gpus", "1"], "--gpus 1: one training takes 2"),
    ],
)
def test_a_mistake_is_one_line(plan, arguments, told):
    with pytest.raises(SystemExit) as stopped:
        plan(*arguments)
    assert stopped.value.code == f"error: {told}"
