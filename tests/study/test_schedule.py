"""The arithmetic of steps and generation batches, held against what trainings of a tiny model write."""

from collections import Counter
from dataclasses import replace

import pytest
from runs import RUN
from tiny_training import PROMPTS, Ours, digits_reward, trainer_of

from mcgrpo.files import iter_json_lines
from mcgrpo.study.schedule import schedule
from mcgrpo.train.callbacks import MetricsFile
from mcgrpo.train.rollout_files import RolloutFiles

BATCHES = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
RECIPES = {
    "several batches a step": {**BATCHES, "steps_per_generation": 1},
    "iterations": {"num_iterations": 2},
    "one batch for several steps": {**BATCHES, "steps_per_generation": 6, "max_steps": 4},
    "epochs that end within a step": {**BATCHES, "gradient_accumulation_steps": 5, "steps_per_generation": 1,
                                      "num_train_epochs": 2},
    "a part of an epoch, its last prompts left out": {"per_device_train_batch_size": 20, "num_train_epochs": 1.5},
}  # fmt: skip


def steps_of(path):
    return [row["step"] for _, row in iter_json_lines(path)]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_training_draws_its_rollouts_when_its_schedule_says_so(recipe, tmp_path):
    recipe = recipe if "num_train_epochs" in recipe else {"max_steps": 3} | recipe
    trainer = trainer_of(Ours, tmp_path, digits_reward, **{"max_steps": -1} | recipe)
    trainer.add_callback(MetricsFile(tmp_path / "metrics.jsonl"))
    RolloutFiles(trainer, tmp_path, None)
    trainer.train()
    run = replace(RUN, num_generations=4, training={"per_device_train_batch_size": 8} | recipe)
    planned = schedule(run, 1, PROMPTS)
    assert steps_of(tmp_path / "metrics.jsonl") == list(range(1, planned.steps + 1))
    batches = Counter(step for step, _ in planned.generations())
    assert Counter(steps_of(tmp_path / "groups.jsonl")) == {step: n * planned.groups for step, n in batches.items()}
