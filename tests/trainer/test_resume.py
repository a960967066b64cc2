"""Resumed trainings against uninterrupted ones, to the bit."""

import pytest
import torch
from tiny_training import TRL, Ours, dataset, history, logged, trainer_of, weights_of

from mcgrpo.trainer import resume

RECIPES = {
    "second-epoch": {"per_device_train_batch_size": 16, "lr_scheduler_type": "cosine", "warmup_steps": 3},
    "iterations": {"num_iterations": 2, "advantage_flip_rate": 0.3},
    "buffered": {"per_device_train_batch_size": 4, "steps_per_generation": 4, "loss_type": "dapo"},
    "all": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "steps_per_generation": 4,
        "num_iterations": 2,
    },
    "compact": {
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "steps_per_generation": 8,
        "num_iterations": 2,
        "beta": 0.0,
    },
}
"""Of 12 prompts, 4 a step where there are 16 rows of G=4: the second epoch begins at the fourth step."""

SAVED = {"save_strategy": "steps", "save_steps": 1, "max_steps": 8}


def resumed(kind, folder, step, recipe, **inputs):
    trainer = trainer_of(kind, folder, **SAVED | recipe | {"save_strategy": "no"}, **inputs)
    trainer.train(resume_from_checkpoint=str(folder / f"checkpoint-{step}"))
    return trainer


def assert_resumed_alike(tmp_path, steps, recipe, **inputs):
    """A training that is resumed at any of the steps ends as one that was never interrupted, to the bit."""
    whole = trainer_of(Ours, tmp_path, **SAVED | recipe, **inputs)
    whole.train()
    for step in steps:
        again = resumed(Ours, tmp_path, step, recipe, **inputs)
        assert logged(again) == logged(whole)
        ends = weights_of(again.model)
        assert all(torch.equal(value, ends[name]) for name, value in weights_of(whole.model).items())
        rows = len(again.losses)
        for one, other in zip(whole.batches[-rows:], again.batches, strict=True):
            assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(recipe, id=name, marks=pytest.mark.law if name in ("all", "compact") else ())
        for name, recipe in RECIPES.items()
    ],
)
@pytest.mark.slow
def test_a_resumed_training_ends_as_an_uninterrupted_one(recipe, tmp_path):
    assert_resumed_alike(tmp_path, (3, 7), recipe)


@pytest.mark.parametrize(("recipe", "prompts"), [pytest.param("second-epoch", 12, marks=pytest.mark.law), ("all", 4)])
@pytest.mark.slow
def test_a_streaming_data_set_is_resumed_in_its_second_epoch(recipe, prompts, tmp_path):
    """Which has neither a sampler nor a length: an epoch is 3 steps here, or 4 that share a generation batch."""
    data = dataset().select(range(prompts)).to_iterable_dataset()
    assert_resumed_alike(tmp_path, (5, 7), RECIPES[recipe], data=data)


@pytest.mark.slow
def test_metrics_that_wait_for_their_row_are_in_the_checkpoint(tmp_path):
    """With a row every 4 steps, that of step 8 is the mean over 5 to 8, though training went on at 6."""
    rare = {"logging_steps": 4}
    whole = trainer_of(Ours, tmp_path, **SAVED | rare)
    whole.train()
    for name in ("drawn/reward", "advantage/abs_max", "grad_norm"):
        assert history(resumed(Ours, tmp_path, 6, rare), name) == history(whole, name)


def test_a_checkpoint_of_trl_is_resumed_with_a_warning(tmp_path):
    trainer_of(TRL, tmp_path, **SAVED | {"max_steps": 2}).train()
    with pytest.warns(UserWarning, match="checkpoint-1 holds no rollouts"):
        resumed(Ours, tmp_path, 1, {"max_steps": 2})


@pytest.mark.parametrize(
    "other",
    [
        {"steps_per_generation": 8},
        {"beta": 0.04},
        {"per_device_train_batch_size": 2},
        {"num_generations": 2},
        {"loss_type": "bnpo"},
    ],
)
def test_with_other_batches_rollouts_are_drawn_anew(other, tmp_path):
    """As TRL does; those of the checkpoint would be cut or computed in another way."""
    recipe = {"per_device_train_batch_size": 4, "steps_per_generation": 4, "beta": 0.0}
    trainer_of(Ours, tmp_path, **SAVED | recipe | {"max_steps": 3}).train()
    with pytest.warns(UserWarning, match="checkpoint-2 is of other batches: training does not resume exactly"):
        again = resumed(Ours, tmp_path, 2, recipe | {"max_steps": 5} | other)
    size = (recipe | other)["per_device_train_batch_size"]
    assert len(again.losses) == 3 and {len(batch["completion_ids"]) for batch in again.batches} <= {*range(1, size + 1)}


def generations(trainer):
    """The micro-batches of its training before which rollouts were drawn, each counted within its optimizer step."""
    drawn_before, theirs, step = [], trainer.training_step, []

    def counted(*args):
        if trainer.state.global_step not in step:
            step[:] = [trainer.state.global_step]
            trainer.micro_batch = -1
        trainer.micro_batch += 1
        return theirs(*args)

    trainer.training_step = counted
    trainer.observers.append(lambda drawn: drawn_before.append(trainer.micro_batch))
    return drawn_before


def test_with_more_accumulation_rollouts_are_drawn_at_the_first_micro_batch_of_a_step(tmp_path):
    recipe = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "beta": 0.0}
    trainer_of(Ours, tmp_path, **SAVED | recipe | {"max_steps": 2}).train()
    again = trainer_of(Ours, tmp_path, **SAVED | recipe | {"max_steps": 4, "gradient_accumulation_steps": 4})
    found = generations(again)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert found == [0, 0, 0]


def test_where_another_process_has_no_rollouts_none_go_on_with_theirs(tmp_path, monkeypatch):
    """A training that goes on with more processes: else they would draw at different steps, and wait for each other."""
    recipe = {"per_device_train_batch_size": 4, "steps_per_generation": 4, "beta": 0.0}
    trainer_of(Ours, tmp_path, **SAVED | recipe | {"max_steps": 3}).train()
    monkeypatch.setattr(resume, "gather_object", lambda found: [*found, None])
    with pytest.warns(UserWarning, match="checkpoint-3 is of other batches"):
        again = resumed(Ours, tmp_path, 3, recipe | {"max_steps": 4})
    assert again._step == 1
