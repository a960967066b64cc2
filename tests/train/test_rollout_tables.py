"""Which rollouts are written down, and how a study asks for them; a resumed training writes none twice."""

import os
import time
from dataclasses import asdict, replace

import pytest
from recorded_trainings import RECIPES, recorded
from training_jobs import job, outcome, steps

from mcgrpo.files import RecordError, read_jsonl
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
    """The folder of a job that was asked for rollouts, and the seconds that it took."""
    folder = tmp_path_factory.mktemp("asked")
    made = job(inputs, folder, rollout_tables=RolloutTables(oracle=40))
    begun = time.perf_counter()
    run_job(made)
    return folder / "run", time.perf_counter() - begun


class TestAsking:
    def test_a_job_writes_them_beside_its_metrics(self, asked):
        folder, _ = asked
        assert {path.name for path in folder.iterdir()} >= {GROUPS, ROLLOUTS}
        found = {row.step for row in read_jsonl(folder / ROLLOUTS, Rollout)}
        assert found == {row["step"] for row in steps(folder)} == {1, 2, 3}
        assert outcome(folder)["rollout_tables"] == asdict(RolloutTables(oracle=40))

    def test_the_oracle_is_none_of_the_seconds_that_a_training_takes(self, asked):
        folder, took = asked
        ended = outcome(folder)
        assert ended["oracle_seconds"] > 0
        assert ended["seconds"] + ended["oracle_seconds"] < took

    def test_where_seeds_are_given_only_their_trainings_draw_the_oracle(self, inputs, tmp_path):
        for seed in (0, 7):
            tables = RolloutTables(steps=1, oracle=4, oracle_seeds=[7])
            made = job(inputs, tmp_path / str(seed), rollout_tables=tables)
            run_job(replace(made, run=replace(made.run, seed=seed)))
            folder = tmp_path / str(seed) / "run"
            drawn = [row.oracle is not None for row in read_jsonl(folder / ROLLOUTS, Rollout)]
            assert drawn and set(drawn) == {seed == 7} and ("oracle_seconds" in outcome(folder)) == (seed == 7)

    def test_a_study_asks_by_the_environment(self, monkeypatch):
        monkeypatch.setattr(os, "environ", {"MCGRPO_ROLLOUT_TABLES": "of another study"})
        environment.prepare({"rollout_tables": {"steps": 5, "oracle": 4}})
        assert parse_tables(os.environ["MCGRPO_ROLLOUT_TABLES"]) == RolloutTables(5, 2, 4)
        environment.prepare({})
        assert "MCGRPO_ROLLOUT_TABLES" not in os.environ and parse_tables("") is None

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("{", "'{' is not a JSON object"),
            ('{"stepps": 3}', "unknown field 'stepps'"),
            ('{"steps": "3"}', "field 'steps' should be int"),
            ('{"prompts": 0}', "prompts is 0, not at least 1"),
        ],
    )
    def test_what_makes_no_sense_is_named(self, text, error):
        with pytest.raises((RecordError, ValueError), match=error):
            parse_tables(text)
