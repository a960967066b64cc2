"""MCGRPOConfig: what it draws, and the TRL it was tested with."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import trl

from mcgrpo import MCGRPOConfig
from mcgrpo.trainer.config import TESTED_TRL

SETTINGS = {"use_cpu": True, "bf16": False, "per_device_train_batch_size": 8, "num_generations": 4}


def test_a_copy_with_another_estimator_draws_what_that_one_draws(tmp_path):
    """TRL's `generation_batch_size` is given by the rest, so that a copy has to leave one of both to it."""
    median = MCGRPOConfig(str(tmp_path), **SETTINGS)
    mean = replace(median, estimator="mean-std", generation_batch_size=None)
    assert (median.num_extra_rollouts, mean.num_extra_rollouts) == (1, 0)
    assert mean.extra_rollouts is mean.advantage_epsilon is None
    assert replace(mean, extra_rollouts=2, generation_batch_size=None).num_extra_rollouts == 2


def test_another_trl_than_the_one_tested_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(trl, "__version__", "9.9.0")
    with pytest.warns(UserWarning, match=r"TRL 9\.9\.0 is installed, and mcgrpo was tested with TRL 1\.16\.0"):
        MCGRPOConfig(str(tmp_path), **SETTINGS)


def test_the_trl_that_is_required_is_the_one_tested():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wanted = [each for extra in project["optional-dependencies"].values() for each in extra]
    assert f"trl=={TESTED_TRL}" in wanted
