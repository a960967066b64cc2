"""Which rollouts are written down, and how a study asks for them; a resumed training writes none twice."""

import os

import pytest
from recorded_trainings import RECIPES, recorded

from mcgrpo.launch import environment
from mcgrpo.train import attempts
from mcgrpo.train.rollout_files import GROUPS, ROLLOUTS
from mcgrpo.train.rollout_tables import RolloutTables, parse_tables

SAVED = {"save_strategy": "steps", "save_steps": 1, "max_steps": 6}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_resuming_leaves_no_row_twice_and_none_out(recipe, tmp_path):
    """Killed after the checkpoint of a step; as a process: tests/train/test_attempts.py."""
    whole, recipe = tmp_path / "whole", SAVED | RECIPES[recipe]
    killed = {step: tmp_path / f"after {step}" for step in (1, 2, 5)}
    attempts.begin(whole, {"run": "one"})
    recorded(whole, copies=killed, **recipe)
    for broken in killed.values():
        with (broken / GROUPS).open("a") as file:
            file.write('{"step":6,"gro')  # killed while it wrote
        assert attempts.begin(broken, {"run": "one"}).started
        recorded(broken, checkpoint=str(attempts.last_checkpoint(broken / "checkpoints")), **recipe)
        for name in (GROUPS, ROLLOUTS):
            assert (broken / name).read_text() == (whole / name).read_text()


def test_a_study_asks_by_the_environment(monkeypatch):
    monkeypatch.setattr(os, "environ", {"MCGRPO_ROLLOUT_TABLES": "of another study"})
    environment.prepare({"rollout_tables": {"steps": 5}})
    assert parse_tables(os.environ["MCGRPO_ROLLOUT_TABLES"]) == RolloutTables(5, 2)
    environment.prepare({})
    assert "MCGRPO_ROLLOUT_TABLES" not in os.environ and parse_tables("") is None
