"""What trainings of a tiny model have written, checked by a reviewer: as it is, and with something changed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from runs import RUN
from tiny_training import PROMPTS, Ours, Released, digits_reward, trainer_of

from mcgrpo.commands.evidence.advantages import disagreements
from mcgrpo.files import RecordError, iter_json_lines, write_jsonl
from mcgrpo.records import Run
from mcgrpo.study.schedule import schedule
from mcgrpo.train.callbacks import MetricsFile
from mcgrpo.train.rollout_files import RolloutFiles

PLAIN = {"estimator": "median-mad"}
BATCHES = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
SEVERAL = {**BATCHES, "steps_per_generation": 1}
RECIPES = {
    "median": PLAIN,
    "without a penalty, the longest of tied rows": {"beta": 0.0, "num_generations": 8},
    "dapo": {"beta": 0.0, "loss_type": "dapo"},
    "mean": {"estimator": "mean-std"},
    "of the whole batch": {"estimator": "batch-std", "per_device_train_batch_size": 16},
    "by lengths": {"estimator": "opo", "extra_rollouts": 2},
    "kept by variance": {"estimator": "pods"},
    "bounded": {"max_advantage": 0.5, "mad_zero": "std", "advantage_epsilon": 0.1},
    "flipped": {"advantage_flip_rate": 0.3},
    "flipped, several batches a step": {"advantage_flip_rate": 0.25, "advantage_flip_rule": "exact", **SEVERAL},
    "iterations": {"num_iterations": 2},
    "one batch for several steps": {**BATCHES, "steps_per_generation": 6, "max_steps": 4},
    "epochs that end within a step": {**BATCHES, "gradient_accumulation_steps": 5, "steps_per_generation": 1,
                                      "advantage_flip_rate": 0.4, "num_train_epochs": 2},
    "a part of an epoch, its last prompts left out": {"per_device_train_batch_size": 20, "num_train_epochs": 1.5},
    "released": {"kind": Released, "group_by": "position", "rescale_by_nonzero": True, "drop_rule": "reward"},
}  # fmt: skip


class Recorded(NamedTuple):
    """A training's folder and the run that it is of."""

    folder: Path
    run: Run

    def check(self):
        return list(disagreements(self.folder, self.run, schedule(self.run, 1, PROMPTS)))


def unscored_reward(completions, **kwargs):
    """Now and then no reward at all."""
    pairs = zip(completions, digits_reward(completions), strict=True)
    return [None if len(text) % 3 == 0 else reward for text, reward in pairs]


def trained(folder, kind=Ours, reward=digits_reward, **recipe):
    """A folder of what a training has written, to be checked."""
    folder.mkdir(exist_ok=True)
    if "num_train_epochs" in recipe:
        recipe["max_steps"] = -1
    trainer = trainer_of(kind, folder, reward, **recipe)
    trainer.add_callback(MetricsFile(folder / "metrics.jsonl"))
    RolloutFiles(trainer, folder, None)
    trainer.train()
    return recorded(folder, **recipe)


def recorded(folder, **recipe):
    """The check of a folder, as of a study that plans this recipe."""
    training = {"per_device_train_batch_size": 8, "beta": 0.04, "max_steps": 3} | recipe
    if training["max_steps"] == -1:
        del training["max_steps"]
    run = replace(
        RUN,
        num_generations=training.pop("num_generations", 4),
        estimator=training.pop("estimator", "median-mad"),
        loss_type=training.pop("loss_type", "dapo"),  # TRL's default
        training=training,
    )
    return Recorded(folder, run)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_what_a_training_writes_follows_from_its_rewards(recipe, tmp_path):
    check = trained(tmp_path / "run", **recipe)
    rows = [row for _, row in iter_json_lines(tmp_path / "run" / "groups.jsonl")]
    assert any(any(row["advantages"]) for row in rows)
    assert check.check() == []


def test_of_rollouts_without_a_reward_too(tmp_path):
    check = trained(tmp_path / "run", reward=unscored_reward)
    assert None in [reward for row in read(check, "groups") for reward in row["rewards"]]
    assert check.check() == []


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain") / "run"
    check = trained(folder, **PLAIN)
    assert check.check() == []
    return {name: [row for _, row in iter_json_lines(folder / f"{name}.jsonl")]
            for name in ("groups", "metrics")}  # fmt: skip


@pytest.fixture
def told(plain, tmp_path):
    """What is told of the plain training once its files have been changed."""

    def told(change=lambda files: None):
        files = json.loads(json.dumps(plain))
        change(files)
        for name, rows in files.items():
            write_jsonl(tmp_path / f"{name}.jsonl", rows)
        return recorded(tmp_path, **PLAIN).check()

    return told


def read(check, name):
    return [row for _, row in iter_json_lines(check.folder / f"{name}.jsonl")]


def uneven(groups):
    """A group whose rewards are others in reverse."""
    return next(row for row in groups if row["rewards"] != row["rewards"][::-1] and any(row["advantages"]))


def negate(row):
    row["advantages"] = [-advantage for advantage in row["advantages"]]


class TestAForgedTraining:
    @pytest.mark.parametrize(
        "change",
        [
            lambda groups: negate(uneven(groups)),
            lambda groups: uneven(groups)["rewards"].reverse(),
            lambda groups: uneven(groups)["kept"].append(uneven(groups)["kept"].pop(0)),
            lambda groups: groups[0].update(kept=[1] * 5),
        ],
        ids=["the sign of a group", "the order of its rewards", "kept rows", "more than G kept"],
    )
    def test_is_found(self, told, change):
        lines = told(lambda files: change(files["groups"]))
        assert any("advantages or kept rows are not those of its rewards" in line for line in lines)

    @pytest.mark.parametrize("change", [lambda value: value * 1.01 + 0.01, lambda _: None])
    def test_with_another_reward_in_its_curve_is_found(self, told, change):
        def forge(files):
            files["metrics"][1]["drawn/reward"] = change(files["metrics"][1]["drawn/reward"])

        assert told(forge) == ["metrics.jsonl: step 2: drawn/reward is not that of groups.jsonl"]

    @pytest.mark.parametrize(
        ("change", "line"),
        [
            (lambda files: files["groups"].clear(), "groups.jsonl: step 1: not 2 groups of this step"),
            (lambda files: files["groups"].pop(), "groups.jsonl: step 3: not 2 groups"),
            (lambda files: files["groups"].append(files["groups"][0]), "groups.jsonl: more than the 3 steps"),
            (lambda files: files["metrics"].pop(), "metrics.jsonl: not a line for each of 3 steps"),
            (lambda files: files["metrics"].pop(0), "metrics.jsonl: not a line for each of 3 steps"),
        ],
    )
    def test_with_something_left_out_or_added_is_found(self, told, change, line):
        assert any(each.startswith(line) for each in told(change))

    @pytest.mark.parametrize(
        ("column", "values"), [("advantages", [0.0]), ("advantages", ["a"] * 5), ("lengths", [[1]] * 5)]
    )
    def test_of_no_numbers_is_an_error_that_names_the_file(self, told, column, values):
        with pytest.raises(RecordError, match=r"groups\.jsonl"):
            told(lambda files: files["groups"][0].update({column: values}))

    def test_of_somebody_elses_estimator_is_not_computed(self, told, tmp_path):
        assert told() == []
        assert recorded(tmp_path, **PLAIN | {"estimator": "no_such_module_of_anybody:centre"}).check() == []


class TestTheSchedule:
    def test_of_too_few_rows_is_an_error(self):
        with pytest.raises(RecordError, match="1 rows of training data do not make a batch of 2 groups"):
            schedule(replace(RUN, training={"per_device_train_batch_size": 8, "max_steps": 1}), 1, 1)
