import json
import os
import statistics
import time
from collections import defaultdict

import pytest
import torch
from tiny_training import Ours, Released, digits_reward, history, same_training, texts_of, trainer_of
from training_jobs import job, make_inputs, outcome, steps
from transformers import TrainerCallback

from mcgrpo.files import RecordError, read_jsonl
from mcgrpo.launch import environment
from mcgrpo.records import Group, Rollout
from mcgrpo.train import attempts
from mcgrpo.train.callbacks import Checkpoints
from mcgrpo.train.job import run_job
from mcgrpo.train.oracle import oracle_means
from mcgrpo.train.rollout_files import (
    GROUPS,
    ROLLOUTS,
    RolloutFiles,
    generating_steps,
    is_flipped,
    oracle_of,
    spread,
)
from mcgrpo.train.rollout_tables import RolloutTables, parse_tables

TABLES = RolloutTables(steps=3, prompts=2, oracle=7)
SAVED = {"save_strategy": "steps", "save_steps": 1, "max_steps": 6}
RECIPES = {
    "default": {},
    "compact": {"beta": 0.0, "loss_type": "dapo"},
    "iterations": {"num_iterations": 2, "advantage_flip_rate": 0.3},
    "buffered": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 4},
    "several a step": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 1},
}


def telling_reward(completions, log_extra, log_metric, **kwargs):
    """Logs all that a reward function can log."""
    log_extra("length", [len(completion) for completion in completions])
    log_metric("digits", sum(map(str.isdigit, "".join(completions))))
    return digits_reward(completions)


class StopAt(TrainerCallback):
    """Ends a training after a step, as a kill would."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            control.should_training_stop = True


def recorded(folder, kind=Ours, tables=TABLES, checkpoint=None, reward=telling_reward, stop_at=None, **settings):
    """A trainer that has trained, and what its observers were called with."""
    folder.mkdir(exist_ok=True)
    trainer, seen = trainer_of(kind, folder / "checkpoints", reward, **settings), []
    trainer.add_callback(Checkpoints(attempts.Earlier()))
    trainer.add_callback(StopAt(stop_at))
    RolloutFiles(trainer, folder, tables)
    trainer.observers.append(lambda drawn: seen.append((trainer.state.global_step + 1, drawn)))
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer, seen


def timeless(trainer):
    rows = [row for row in trainer.state.log_history if "loss" in row]
    return [{name: row[name] for name in row if "time" not in name and "seconds" not in name} for row in rows]


def by_group(rows):
    """Rows of rollouts.jsonl by step and prompt, in order."""
    found = defaultdict(list)
    for row in rows:
        found[row.step, row.prompt].append(row)
    return found


class TestTraining:
    @pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
    def test_ends_the_same_to_the_bit_with_an_oracle_and_without(self, recipe, tmp_path):
        plain = trainer_of(Ours, tmp_path / "plain", telling_reward, **recipe)
        plain.train()
        watched, _ = recorded(tmp_path / "watched", **recipe)
        assert read_jsonl(tmp_path / "watched" / ROLLOUTS, Rollout)[0].oracle is not None
        assert same_training(plain, watched)
        assert timeless(plain) == timeless(watched)
        assert plain.state.num_input_tokens_seen == watched.state.num_input_tokens_seen > 0
        assert {name: list(values) for name, values in plain._logs.items() if name != "extra"} == {
            name: list(values) for name, values in watched._logs.items() if name != "extra"
        }
        assert plain._logs["extra"] == watched._logs["extra"] and plain._logs["extra"]["length"]

    def test_has_no_phase_that_the_oracle_counts_in(self, tmp_path):
        trainer = trainer_of(Ours, tmp_path, telling_reward)
        found = []

        def observe(drawn):
            before = dict(trainer._timer.seconds)
            oracle_means(trainer, drawn.inputs[:1], 16)
            found.append(before == trainer._timer.seconds)

        trainer.observers.append(observe)
        trainer.train()
        assert found == [True] * 3
        assert trainer._timer.seconds["observers"] > 0 and min(history(trainer, "seconds/update")) > 0
        assert not history(trainer, "seconds/observers")


class TestGroups:
    @pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
    def test_are_all_that_were_drawn(self, recipe, tmp_path):
        _, seen = recorded(tmp_path, **recipe)
        rows = read_jsonl(tmp_path / GROUPS, Group)
        assert len(rows) == sum(len(drawn.rewards) for _, drawn in seen)
        assert [row.step for row in rows] == [step for step, drawn in seen for _ in drawn.rewards]
        for name, written in (("rewards", "rewards"), ("advantages", "advantages"), ("lengths", "lengths")):
            drawn = torch.cat([getattr(each, name) for _, each in seen])
            assert torch.equal(torch.tensor([getattr(row, written) for row in rows]).to(drawn.dtype), drawn)
        assert all(sum(row.kept) == 4 and len(row.kept) == 5 for row in rows)
        places = defaultdict(list)
        for row in rows:
            places[row.step].append(row.group)
        assert all(found == list(range(len(found))) for found in places.values())

    def test_have_the_mean_reward_that_is_logged(self, tmp_path):
        trainer, _ = recorded(tmp_path)
        means = defaultdict(list)
        for row in read_jsonl(tmp_path / GROUPS, Group):
            means[row.step] += row.rewards
        assert [statistics.mean(means[step]) for step in (1, 2, 3)] == pytest.approx(history(trainer, "drawn/reward"))

    def test_without_a_reward_have_none(self, tmp_path):
        def reward(completions, **kwargs):
            return [None, *digits_reward(completions[1:])]

        recorded(tmp_path, reward=reward)
        first = read_jsonl(tmp_path / GROUPS, Group)[0]
        assert first.rewards[0] is None and None not in first.rewards[1:] and first.kept[0] == 0
        row = read_jsonl(tmp_path / ROLLOUTS, Rollout)[0]
        assert (row.reward, row.advantage, row.kept, row.pivot, row.flipped) == (None, 0.0, False, False, None)


class TestRollouts:
    def test_are_of_the_first_the_middle_and_the_last_step(self, tmp_path):
        trainer, _ = recorded(tmp_path, max_steps=5)
        found = by_group(read_jsonl(tmp_path / ROLLOUTS, Rollout))
        assert [step for step, _ in found] == [1, 1, 3, 3, 5, 5]
        for (step, prompt), rows in found.items():
            assert [row.sample for row in rows] == [0, 1, 2, 3, 4] and sum(row.kept for row in rows) == 4
            batch = trainer.batches[step - 1]
            trained_on = zip(texts_of(trainer, batch, "prompt_ids"), texts_of(trainer, batch), strict=True)
            kept = [row.completion for row in rows if row.kept]
            assert sorted(text for given, text in trained_on if given == prompt) == sorted(kept)
            assert [row.reward for row in rows] == digits_reward([row.completion for row in rows])

    def test_mark_the_one_left_out_at_the_median(self, tmp_path):
        recorded(tmp_path, max_steps=5)
        for rows in by_group(read_jsonl(tmp_path / ROLLOUTS, Rollout)).values():
            (pivot,) = [row for row in rows if row.pivot]
            assert pivot.advantage == 0 and not pivot.kept
            assert pivot.reward == statistics.median(row.reward for row in rows)

    def test_mark_no_other_that_is_left_out(self, tmp_path):
        recorded(tmp_path, estimator="mean-std-plus1", max_steps=5)
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert any(not row.kept and row.advantage != 0 for row in rows)
        assert not any(row.pivot for row in rows if row.advantage != 0)

    def test_are_flipped_against_the_mean_of_as_many_more_as_are_asked_for(self, tmp_path):
        drawn = defaultdict(list)

        def reward(prompts, completions, trainer_state, **kwargs):
            rewards = digits_reward(completions)
            drawn[trainer_state.global_step + 1].append((prompts, rewards))
            return rewards

        recorded(tmp_path, reward=reward, max_steps=5)
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        for (step, prompt), found in by_group(rows).items():
            _, *oracle = drawn[step]  # the first call is that of training
            rewards = [
                value for prompts, values in oracle for at, value in zip(prompts, values, strict=True) if at == prompt
            ]
            assert len(rewards) == 7 and {row.oracle for row in found} == {statistics.mean(rewards)}
            assert all(len(prompts) <= 10 for prompts, _ in oracle)  # no more at a time than training's own
        assert {row.flipped for row in rows} == {True, False}

    def test_have_no_oracle_with_vllm_or_unless_it_is_asked_for(self, tmp_path):
        trainer, _ = recorded(tmp_path, tables=RolloutTables())
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert {row.flipped for row in rows} == {row.oracle for row in rows} == {None}
        trainer.use_vllm = True
        assert oracle_of(trainer, [{"prompt": "Sam"}], 32) == [None]

    def test_of_groups_by_position_have_their_own_prompts_and_oracles(self, tmp_path):
        _, seen = recorded(tmp_path, Released, group_by="position")
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert [row.prompt for row in rows[:10]] == [row["prompt"] for row in seen[0][1].inputs]
        oracles = {(row.prompt, row.oracle) for row in rows[:10]}
        assert len(oracles) == 2 and rows[4].prompt != rows[0].prompt

    def test_of_a_step_that_draws_several_times_are_of_the_first_time(self, tmp_path):
        _, seen = recorded(tmp_path, **RECIPES["several a step"])
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert [step for step, _ in seen] == [1, 1, 2, 2, 3, 3]
        assert [row.step for row in rows] == [1] * 5 + [2] * 5 + [3] * 5
        assert [row.prompt for row in rows] == [row["prompt"] for _, drawn in seen[::2] for row in drawn.inputs]

    def test_are_none_unless_they_are_asked_for(self, tmp_path):
        recorded(tmp_path, tables=None)
        assert (tmp_path / GROUPS).is_file() and not (tmp_path / ROLLOUTS).exists()


class TestResuming:
    @pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
    def test_leaves_no_row_twice_and_none_out(self, recipe, tmp_path):
        recorded(tmp_path / "whole", **SAVED | recipe)
        for step in (1, 2, 5):
            broken = tmp_path / f"after {step}"
            attempts.begin(broken, {"run": "one"})
            recorded(broken, stop_at=step, **SAVED | recipe)
            with (broken / GROUPS).open("a") as file:
                file.write('{"step":6,"gro')  # killed while it wrote
            assert attempts.begin(broken, {"run": "one"}).started
            recorded(broken, checkpoint=str(attempts.last_checkpoint(broken / "checkpoints")), **SAVED | recipe)
            for name in (GROUPS, ROLLOUTS):
                assert (broken / name).read_text() == (tmp_path / "whole" / name).read_text()

    @pytest.mark.slow
    @pytest.mark.parametrize("launcher", ["one process", "two processes"])
    def test_after_a_kill_ends_with_the_same_files(self, launcher, tmp_path):
        from test_attempts import HERE, LONG, PRELOADED, TWO_PROCESSES, killed_at, run

        how = TWO_PROCESSES if launcher == "two processes" else PRELOADED
        inputs = make_inputs(tmp_path / "inputs")
        asked = HERE | {"MCGRPO_ROLLOUT_TABLES": '{"steps": 3, "prompts": 3, "oracle": 5}'}
        whole, broken = (job(inputs, tmp_path / name, LONG, save_steps=2) for name in ("whole", "broken"))
        done = run(whole, asked, how)
        assert done.returncode == 0, done.stderr
        killed_at(broken, 4, asked, how)
        assert run(broken, asked, how).returncode == 0
        for name in (GROUPS, ROLLOUTS):
            assert (broken.output / name).read_text() == (whole.output / name).read_text()
        groups = read_jsonl(whole.output / GROUPS, Group)
        prompts = 8 if launcher == "two processes" else 4
        assert [row.group for row in groups if row.step == 1] == list(range(prompts))
        rows = read_jsonl(whole.output / ROLLOUTS, Rollout)
        for step in {row.step for row in rows}:
            of_step = [row.rewards for row in groups if row.step == step][:3]
            assert [row.reward for row in rows if row.step == step] == [value for each in of_step for value in each]
        assert None not in {row.oracle for row in rows}


class TestAsking:
    def test_a_job_writes_them_beside_its_metrics(self, tmp_path):
        inputs = make_inputs(tmp_path / "inputs")
        run_job(job(inputs, tmp_path, rollout_tables=TABLES))
        assert {path.name for path in (tmp_path / "run").iterdir()} >= {GROUPS, ROLLOUTS}
        found = {row.step for row in read_jsonl(tmp_path / "run" / ROLLOUTS, Rollout)}
        assert found == {row["step"] for row in steps(tmp_path / "run")} == {1, 2, 3}
        assert "rollout_tables" not in json.dumps(outcome(tmp_path / "run"))

    def test_the_oracle_is_none_of_the_seconds_that_a_training_takes(self, tmp_path):
        inputs = make_inputs(tmp_path / "inputs")
        begun = time.perf_counter()
        run_job(job(inputs, tmp_path, rollout_tables=RolloutTables(oracle=200)))
        ended = outcome(tmp_path / "run")
        assert ended["oracle_seconds"] > 0
        assert ended["seconds"] + ended["oracle_seconds"] < time.perf_counter() - begun

    def test_a_study_asks_by_the_environment(self, monkeypatch):
        monkeypatch.setattr(os, "environ", {"MCGRPO_ROLLOUT_TABLES": "of another study"})
        environment.prepare({"rollout_tables": {"steps": 5, "oracle": 4}})
        assert parse_tables(os.environ["MCGRPO_ROLLOUT_TABLES"]) == RolloutTables(5, 2, 4)
        environment.prepare({})
        assert "MCGRPO_ROLLOUT_TABLES" not in os.environ and parse_tables("") is None

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("3", "'3' is not a JSON object"),
            ("{", "'{' is not a JSON object"),
            ('{"stepps": 3}', "unknown field 'stepps'"),
            ('{"steps": "3"}', "field 'steps' should be int"),
            ('{"prompts": 0}', "prompts is 0, not at least 1"),
        ],
    )
    def test_what_makes_no_sense_is_named(self, text, error):
        with pytest.raises((RecordError, ValueError), match=error):
            parse_tables(text)

    @pytest.mark.parametrize(
        ("count", "chosen"), [(1, [1]), (2, [1, 9]), (3, [1, 5, 9]), (4, [1, 4, 6, 9]), (20, list(range(1, 10)))]
    )
    def test_steps_are_spread_evenly(self, count, chosen):
        assert spread(list(range(1, 10)), count) == chosen

    @pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
    def test_the_steps_that_draw_are_known_before(self, recipe, tmp_path):
        trainer, seen = recorded(tmp_path, tables=None, max_steps=5, **recipe)
        assert generating_steps(trainer.args, 5) == sorted({step for step, _ in seen})


class TestFlips:
    @pytest.mark.parametrize(
        ("reward", "advantage", "kept", "oracle", "flipped"),
        [
            (2.0, 1.0, True, 1.5, False),
            (2.0, -1.0, True, 1.5, True),
            (2.0, 0.0, True, 1.5, True),
            (0.0, 0.0, True, 0.0, False),
            (0.0, -1.0, True, 0.0, True),
            (0.0, -1.0, True, 0.5, False),
            (2.0, 0.0, False, 1.5, False),
            (2.0, 1.0, True, None, None),
            (float("nan"), 0.0, False, 1.5, None),
        ],
    )
    def test_are_of_kept_rollouts_and_count_0_as_a_sign(self, reward, advantage, kept, oracle, flipped):
        assert is_flipped(reward, advantage, kept, oracle) is flipped
