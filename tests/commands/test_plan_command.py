"""What a study will take. Its steps are held against real trainings in `tests/study/test_schedule.py`."""

from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest
import studies
from runs import write_sealed

from mcgrpo.commands import contexts
from mcgrpo.commands.plan.__main__ import main, notes, steps, to_train, trainings
from mcgrpo.study.methods import UNTRAINED
from mcgrpo.study.plan import runs

ROOT = studies.ROOT
MINI, PAPER = studies.load("mini"), studies.load("config")


def trained(config):
    return {run.name: run for run in runs(config) if run.method != UNTRAINED}


def finish(run, seconds, **outcome):
    """What a finished training leaves."""
    record = {
        **asdict(run),
        "outcome": {"status": "finished", "started": 0.0, "seconds": seconds, "steps": 40, **outcome},
    }
    write_sealed(Path("results", run.study, "runs", run.name, "run.json"), record)


def times(config):
    """Run -> its time, as seconds and source."""
    return {row.run: (row.seconds, row.source) for row in trainings(config).itertuples()}


def test_every_training_counts_once_in_the_first_experiment_that_asks_for_it(here):
    found = trainings(MINI)
    assert sorted(to_train(found).run) == sorted(trained(MINI))
    main, ood = (found[found.experiment == name] for name in ("main", "ood"))
    own, shared = 4 * 3 * 2, 2 * 3 * 2  # two seeds; GRPO and MC-GRPO are shared with headline
    assert (len(main), main.shared.sum()) == (own + shared, shared)
    assert len(ood) == 4 * len(MINI["seeds"]) and ood.shared.all()


def test_what_has_finished_is_not_counted_again(here, capsys):
    run = trained(MINI)["toy-qwen3/grpo/G2/default/seed0"]
    finish(run, 20.0)
    assert len(to_train(trainings(MINI))) == len(trained(MINI)) - 1
    path = Path("results/mini/runs", run.name, "run.json")
    path.write_text(path.read_text().replace("20.0", "10.0"))
    assert len(to_train(trainings(MINI))) == len(trained(MINI))
    assert f"warning: not counted as finished: {path} has changed since it was written" in capsys.readouterr().err
    finish(run, 20.0)
    other = studies.changed(MINI, {"training": {"learning_rate": 1e-4}})
    assert len(to_train(trainings(other))) == len(trained(MINI))
    finish(run, 20.0, status="failed")
    assert len(to_train(trainings(MINI))) == len(trained(MINI))


def test_a_time_is_the_mean_of_trainings_of_the_same_work(here):
    for seed, seconds in enumerate((20.0, 30.0)):
        finish(trained(MINI)[f"toy-qwen3/grpo/G2/default/seed{seed}"], seconds)
    found = times(MINI)
    for same in ("grpo/G2/default/seed2", "dapo/G2/default/seed0", "grpo/G2/composite/seed0"):
        assert found[f"toy-qwen3/{same}"] == (25.0, "measured")
    for other in ("mc-grpo/G2/default", "grpo/G4/default", "grpo/G2/best-on-test"):  # rollouts, G, evaluations
        assert found[f"toy-qwen3/{other}/seed0"][1] == "toy"


def test_the_papers_times_are_those_of_its_own_settings_until_some_are_measured(here):
    found = times(PAPER)
    assert found["qwen3-1.7b-gsm8k/grpo/G2/default/seed4"] == (1316.0, "published")
    assert found["qwen2.5-7b-math/mc-grpo/G8/default/seed0"] == (27700.0, "published")
    assert found["qwen3-1.7b-gsm8k/dapo/G2/default/seed0"] == (1316.0, "published")
    assert found["qwen3-1.7b-gsm8k/grpo-plus1/G2/default/seed0"] == (1521.0, "published")
    for other in ("grpo/G2/released", "grpo/G4/update-matched"):
        assert found[f"qwen3-1.7b-gsm8k/{other}/seed0"][1] == "unknown"
    folder = {"hub": None, "folder": "a/folder"}  # of the same weights
    local = studies.changed(PAPER, {"models": {"qwen3-1.7b": folder}})
    assert times(local)["qwen3-1.7b-gsm8k/grpo/G2/default/seed4"] == (1316.0, "published")
    finish(trained(PAPER)["qwen3-1.7b-gsm8k/grpo/G2/default/seed0"], 900.0)
    assert times(PAPER)["qwen3-1.7b-gsm8k/dapo/G2/default/seed1"] == (900.0, "measured")


def test_on_one_gpu_the_papers_batches_take_its_gpu_hours(here):
    batch = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 4}
    whole = {name: {"training": {"sharding": "none"}} for name in PAPER["settings"]}
    config = studies.changed(PAPER, {"gpus": 1, "training": batch, "settings": whole})
    assert times(config)["qwen3-1.7b-gsm8k/grpo/G2/default/seed0"] == (2632.0, "published")


@pytest.mark.parametrize(
    "change",
    [{"gpus": 4}, {"training": {"max_completion_length": 512}}, {"training": {"max_steps": 100}}],
)
def test_another_study_has_not_the_papers_times(here, change):
    change = studies.changed(change, {"settings": {name: change for name in PAPER["settings"] if "training" in change}})
    assert {source for _, source in times(studies.changed(PAPER, change)).values()} == {"unknown"}


def test_what_is_not_known_is_no_zero(printed):
    whole = to_train(trainings(PAPER))
    assert whole.source.value_counts().to_dict() == {"published": 540, "unknown": 80} and whole.steps.notna().all()
    Path("elsewhere.yaml").write_text("datasets: {gsm8k: {hub: org/data}}\n")
    text = printed(main, ROOT / "config/config.yaml", "elsewhere.yaml")
    total = next(line for line in text.splitlines() if "total" in line)
    assert total.split()[5] == "unknown" and total.endswith("540 published, 80 unknown")


@pytest.mark.parametrize(
    ("at_once", "hours"), [(1, "19.0 hours, without 1 of"), (2, "9.5 hours"), (9, "7.0 hours"), (600, "7.0 hours")]
)
def test_wall_clock_is_the_work_shared_out_and_no_less_than_the_longest_training(at_once, hours):
    seconds = pd.Series([3, 7, 5, 4, None]) * 3600
    left = pd.DataFrame({"seconds": seconds, "source": ["measured"] * 4 + ["unknown"]})
    assert f"{at_once} at a time: {hours}" in list(notes(left, at_once))[-1]


def test_the_batch_arithmetic_of_the_paper():
    run = trained(PAPER)["qwen3-1.7b-gsm8k/mc-grpo/G4/default/seed0"]
    assert steps(run, 2, 7473) == 7473 // 8 * 2  # 2 processes x 16 rows = 8 prompts x G=4, two iterations over each
    assert steps(run, 2, None) is None and steps(run, 2, 7) == 0


def test_a_fresh_clone_is_told_about_how_long_the_mini_study_takes(printed):
    """On the machine that is named; the whole study, not its trainings alone."""
    text = printed(main, ROOT / "config/mini.yaml", "--cores", "2")
    assert "core-minutes" in text and f"{len(trained(MINI))} toy" in text and "on two cores of an AMD EPYC" in text
    assert "unknown" not in text and "With evaluation and report: about " in text.split("2 at a time: ")[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([ROOT / "config/none.yaml"], f"{ROOT / 'config/none.yaml'}: no such file"),
        ([ROOT / "config/config.yaml", "--gpus", "1"], "--gpus 1: one training takes 2"),
    ],
)
def test_a_mistake_is_one_line(printed, arguments, told):
    with pytest.raises(SystemExit) as stopped:
        printed(main, *arguments)
    assert stopped.value.code == f"error: {told}"


def test_the_plan_says_where_a_context_cuts_completions():
    (line,) = contexts.notes(studies.load("config"))
    cut = "8,000 asked, fewer than 4,096 fit"
    assert line == f"Tokens of a completion of qwen2.5-math-1.5b, beside its prompt: aime24: {cut}; amc23: {cut}."
    assert not list(contexts.notes(studies.load("mini")))
