"""MCGRPOConfig: what it draws, what it says of its fields, what it makes of TRL's arguments, and what it refuses."""

import inspect
from dataclasses import replace
from functools import partial

import pytest
from device import ON_GPU
from tiny_training import SETTINGS, TRL, Ours, dataset, digits_reward, model_folder, same_training, trained
from transformers import HfArgumentParser
from trl import GRPOTrainer

from mcgrpo import MCGRPOConfig, MCGRPOTrainer


def test_a_copy_with_another_estimator_draws_what_that_one_draws(tmp_path):
    """TRL's `generation_batch_size` is given by the rest, so that a copy has to leave one of both to it."""
    median = MCGRPOConfig(str(tmp_path), **SETTINGS)
    mean = replace(median, estimator="mean-std", generation_batch_size=None)
    assert (median.num_extra_rollouts, mean.num_extra_rollouts) == (1, 0)
    assert mean.extra_rollouts is mean.advantage_epsilon is None
    assert replace(mean, extra_rollouts=2, generation_batch_size=None).num_extra_rollouts == 2


def test_an_estimator_of_ones_own_can_be_named_on_a_command_line():
    parsed = HfArgumentParser(MCGRPOConfig).parse_args(["--estimator", "my_estimators:midrange", "--mad_zero", "std"])
    assert (parsed.estimator, parsed.mad_zero) == ("my_estimators:midrange", "std")


def test_the_trainer_has_the_signature_of_trl():
    assert inspect.signature(MCGRPOTrainer) == inspect.signature(GRPOTrainer)


def test_without_arguments_they_are_the_defaults(tmp_path, monkeypatch):
    """As in TRL, with a folder named after the model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mcgrpo.trainer.trainer.MCGRPOConfig", partial(MCGRPOConfig, use_cpu=not ON_GPU, bf16=False))
    args = MCGRPOTrainer(str(model_folder()), digits_reward, None, dataset()).args
    assert (args.output_dir, args.estimator) == ("tiny-MC-GRPO", "median-mad")


@pytest.mark.parametrize(("scale", "estimator"), [(False, "mean"), ("none", "mean"), ("batch", "batch-std")])
def test_scale_rewards_is_an_estimator(scale, estimator, tmp_path):
    """For a script of TRL's in which only the import was changed: no extra rollout, and a warning that says so."""
    with pytest.warns(
        UserWarning, match=f"is the estimator '{estimator}'.* leave scale_rewards out to train with 'median"
    ):
        ours = trained(Ours, tmp_path, scale_rewards=scale, compact_updates=False)
    assert (ours.args.estimator, ours.args.num_extra_rollouts) == (estimator, 0)
    assert same_training(trained(TRL, tmp_path, scale_rewards=scale), ours)
    again = replace(ours.args, generation_batch_size=None)
    assert again.estimator == estimator
    with pytest.raises(ValueError, match="leave scale_rewards out"):
        replace(ours.args, generation_batch_size=None, estimator="median-mad")
