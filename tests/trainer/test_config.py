"""MCGRPOConfig: what it draws."""

from dataclasses import replace

from mcgrpo import MCGRPOConfig

SETTINGS = {"use_cpu": True, "bf16": False, "per_device_train_batch_size": 8, "num_generations": 4}


def test_a_copy_with_another_estimator_draws_what_that_one_draws(tmp_path):
    """TRL's `generation_batch_size` is given by the rest, so that a copy has to leave one of both to it."""
    median = MCGRPOConfig(str(tmp_path), **SETTINGS)
    mean = replace(median, estimator="mean-std", generation_batch_size=None)
    assert (median.num_extra_rollouts, mean.num_extra_rollouts) == (1, 0)
    assert mean.extra_rollouts is mean.advantage_epsilon is None
    assert replace(mean, extra_rollouts=2, generation_batch_size=None).num_extra_rollouts == 2
