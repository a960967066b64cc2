"""Which rollouts are written down, and how a study asks for them; a resumed training writes none twice."""

import os
from dataclasses import asdict

import pytest
from recorded_trainings import RECIPES, recorded
from training_jobs import job, outcome, steps

from mcgrpo.files import read_jsonl
from mcgrpo.launch import environment
from mcgrpo.records import Rollout
from mcgrpo.train import attempts
from mcgrpo.train.job import run_job
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


@pytest.fixture(scope="module")
def asked(inputs, tmp_path_factory):
    """The folder of a job that was asked for rollouts."""
    folder = tmp_path_factory.mktemp("asked")
    run_job(job(inputs, folder, rollout_tables=RolloutTables()))
    return folder / "run"


class TestAsking:
    def test_a_job_writes_them_beside_its_metrics(self, asked):
        folder = asked
        assert {path.name for path in folder.iterdir()} >= {GROUPS, ROLLOUTS}
        found = {row.step for row in read_jsonl(folder / ROLLOUTS, Rollout)}
        assert found == {row["step"] for row in steps(folder)} == {1, 2, 3}
        assert outcome(folder)["rollout_tables"] == asdict(RolloutTables())

    def test_a_study_asks_by_the_environment(self, monkeypatch):
        monkeypatch.setattr(os, "environ", {"MCGRPO_ROLLOUT_TABLES": "of another study"})
        environment.prepare({"rollout_tables": {"steps": 5}})
        assert parse_tables(os.environ["MCGRPO_ROLLOUT_TABLES"]) == RolloutTables(5, 2)
        environment.prepare({})
        assert "MCGRPO_ROLLOUT_TABLES" not in os.environ and parse_tables("") is None
