"""What trainings of a tiny model have written, checked by a reviewer: as it is, and with something changed."""

import json
import math
from dataclasses import replace

import pytest
from runs import RUN
from tiny_training import PROMPTS, Ours, Released, digits_reward, trainer_of

from mcgrpo.commands.evidence.advantages import is_known
from mcgrpo.commands.evidence.rollouts import Recorded
from mcgrpo.files import RecordError, iter_json_lines, write_jsonl
from mcgrpo.study.schedule import schedule
from mcgrpo.train.callbacks import MetricsFile
from mcgrpo.train.rollout_files import RolloutFiles
from mcgrpo.train.rollout_tables import RolloutTables

TABLES = RolloutTables(steps=2, prompts=2)
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
    "released": {"kind": Released, "group_by": "position", "rescale_by_nonzero": True, "drop_rule": "reward"},
}  # fmt: skip


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
    RolloutFiles(trainer, folder, TABLES)
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
    return Recorded(folder, run, schedule(run, 1, PROMPTS), TABLES)


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
            for name in ("groups", "metrics", "rollouts")}  # fmt: skip


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


COLUMNS = ("rewards", "advantages", "kept", "lengths")
OTHER_ADVANTAGES = "its advantages are not those of its rewards"


def negate(row):
    row["advantages"] = [-advantage for advantage in row["advantages"]]


class TestAForgedTraining:
    @pytest.mark.parametrize(
        ("change", "line"),
        [
            (lambda groups: negate(uneven(groups)), OTHER_ADVANTAGES),
            (lambda groups: uneven(groups)["rewards"].reverse(), OTHER_ADVANTAGES),
            (lambda groups: uneven(groups)["kept"].append(uneven(groups)["kept"].pop(0)),
             "kept are not those of its rewards"),
            (lambda groups: groups[0].update(kept=[1] * 5), "step 1: group 0: 5 rollouts are kept of G=4"),
            (lambda groups: [row[name].reverse() for row in groups for name in COLUMNS],
             "rollouts.jsonl: step 1: rollout"),
        ],
        ids=["the sign of a group", "the order of its rewards", "kept rows", "more than G kept", "all orders"],
    )  # fmt: skip
    def test_is_found(self, told, change, line):
        assert any(line in each for each in told(lambda files: change(files["groups"])))

    def test_with_all_signs_flipped_is_found_in_every_step(self, told):
        lines = told(lambda files: [negate(row) for row in files["groups"]])
        assert all(any(f"step {step}: group" in line for line in lines) for step in (1, 2, 3))

    @pytest.mark.parametrize("name", ["drawn/reward", "advantage/abs_max", "flips/loo_mean", "completions/mean_length"])
    @pytest.mark.parametrize("change", [lambda value: value * 1.01 + 0.01, lambda _: None, str, lambda _: math.nan])
    def test_with_another_metric_is_found(self, told, name, change):
        def forge(files):
            files["metrics"][1][name] = change(files["metrics"][1][name])

        (line,) = told(forge)
        assert line.startswith(f"metrics.jsonl: step 2: {name} is ")

    def test_with_a_metric_left_out_is_found(self, told):
        assert told(lambda files: files["metrics"][2].pop("drawn/centre")) == ["metrics.jsonl: step 3: no drawn/centre"]


class TestMissingEvidence:
    @pytest.mark.parametrize(
        ("change", "line"),
        [
            (lambda files: files["groups"].clear(), "groups.jsonl: step 1: its groups from 0 on are not there"),
            (lambda files: files["groups"].pop(), "groups.jsonl: step 3: its groups from 0 on are not there"),
            (lambda files: files["groups"].pop(2), "groups.jsonl: step 2: its groups from 0 on are not there"),
            (lambda files: files["groups"].append(files["groups"][0]), "groups.jsonl: has more than the 3 steps"),
            (lambda files: files["metrics"][1].update(loss=math.inf), "metrics.jsonl: step 2: loss is infinite"),
            (lambda files: files["metrics"].pop(), "metrics.jsonl: ends before step 3 of 3"),
            (lambda files: files["metrics"].pop(0), "metrics.jsonl: step 2 where 1 should be"),
            (lambda files: files["metrics"].append({"step": 4}), "metrics.jsonl: has more than the 3 steps"),
            (lambda files: files["rollouts"].clear(), "rollouts.jsonl: rollouts of the steps [], not of 2 from 1 on"),
            (lambda files: files["rollouts"].pop(), "rollouts.jsonl: step 3: 9 rollouts, not 10"),
        ],
    )
    def test_is_named(self, told, change, line):
        assert any(each.startswith(line) for each in told(change))

    @pytest.mark.parametrize("name", ["groups", "metrics", "rollouts"])
    def test_of_a_whole_file_is_an_error_with_its_name(self, told, tmp_path, name):
        assert told() == []
        (tmp_path / f"{name}.jsonl").unlink()
        with pytest.raises(RecordError, match=rf"{name}\.jsonl: no such file"):
            recorded(tmp_path, **PLAIN).check()

    @pytest.mark.parametrize(
        ("column", "values"),
        [("advantages", [0.0]), ("advantages", ["a"] * 5), ("kept", [2, 1, 1, 0, 1]), ("lengths", [[1]] * 5),
         ("rewards", [1e400] * 5), ("rewards", [True] * 5 + [1.0]), ("advantages", [math.nan] * 5)],
    )  # fmt: skip
    def test_of_no_numbers_is_an_error_that_names_the_step(self, told, column, values):
        with pytest.raises(RecordError, match=r"groups\.jsonl: step 1"):
            told(lambda files: files["groups"][0].update({column: values}))


class TestAnEstimatorOfSomebodysOwn:
    def test_is_not_computed_but_what_follows_from_the_record_is(self, told, tmp_path):
        assert told() == []
        check = recorded(tmp_path, **PLAIN | {"estimator": "no_such_module_of_anybody:centre"})
        assert not is_known(check.run) and check.check() == []
        rows = read(check, "metrics")
        rows[0]["advantage/abs_max"] += 1
        write_jsonl(tmp_path / "metrics.jsonl", rows)
        (line,) = recorded(tmp_path, estimator="no_such_module_of_anybody:centre").check()
        assert line.startswith("metrics.jsonl: step 1: advantage/abs_max is ")


class TestTheSchedule:
    def test_of_too_few_rows_is_an_error(self):
        with pytest.raises(RecordError, match="1 rows of training data do not make a batch of 2 groups"):
            schedule(replace(RUN, training={"per_device_train_batch_size": 8, "max_steps": 1}), 1, 1)
