"""What a training drew, as files: all groups as numbers, and some rollouts as text."""

import statistics
from collections import defaultdict
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from recorded_trainings import RECIPES, by_group, recorded, telling_reward
from tiny_training import Ours, Released, digits_reward, history, same_training, texts_of, trainer_of

from mcgrpo.files import read_jsonl
from mcgrpo.records import Group, Rollout
from mcgrpo.train import rollout_files
from mcgrpo.train.oracle import oracle_means
from mcgrpo.train.rollout_files import GROUPS, ROLLOUTS, is_flipped, oracle_of
from mcgrpo.train.rollout_tables import RolloutTables

ONE = {"max_steps": 1}
UNEVEN = {"gradient_accumulation_steps": 4, "steps_per_generation": 6, "num_iterations": 3, "max_steps": 6}
"""An epoch is one generation, used in 18 micro-batches: five optimizer steps, of which the last is short."""
several = pytest.mark.parametrize("recipe", RECIPES)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Recipe -> folder of a training of three steps with an oracle, its trainer, and what its observers saw."""

    @cache
    def watched(recipe):
        folder = tmp_path_factory.mktemp("watched")
        return folder, *recorded(folder, **RECIPES[recipe])

    return watched


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """A training of five steps: its folder, its trainer, and step -> the prompts and rewards of every scoring."""
    folder, scored = tmp_path_factory.mktemp("five"), defaultdict(list)

    def reward(prompts, completions, trainer_state, **kwargs):
        rewards = telling_reward(completions, **kwargs)
        scored[trainer_state.global_step + 1].append((prompts, rewards))
        return rewards

    trainer, _ = recorded(folder, reward=reward, max_steps=5)
    return folder, trainer, scored


def timeless(trainer):
    rows = [row for row in trainer.state.log_history if "loss" in row]
    return [{name: row[name] for name in row if "time" not in name and "seconds" not in name} for row in rows]


class TestTraining:
    @pytest.mark.slow
    @several
    def test_ends_the_same_to_the_bit_with_an_oracle_and_without(self, recipe, watched, tmp_path):
        folder, trainer, _ = watched(recipe)
        plain = trainer_of(Ours, tmp_path, telling_reward, **RECIPES[recipe])
        plain.train()
        assert read_jsonl(folder / ROLLOUTS, Rollout)[0].oracle is not None
        assert same_training(plain, trainer)
        assert timeless(plain) == timeless(trainer)
        assert plain.state.num_input_tokens_seen == trainer.state.num_input_tokens_seen > 0
        assert {name: list(values) for name, values in plain._logs.items() if name != "extra"} == {
            name: list(values) for name, values in trainer._logs.items() if name != "extra"
        }
        assert plain._logs["extra"] == trainer._logs["extra"] and plain._logs["extra"]["length"]

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
    @several
    def test_are_all_that_were_drawn(self, recipe, watched):
        folder, _, seen = watched(recipe)
        rows = read_jsonl(folder / GROUPS, Group)
        assert len(rows) == sum(len(drawn.rewards) for _, drawn in seen)
        assert [row.step for row in rows] == [step for step, drawn in seen for _ in drawn.rewards]
        for name in ("rewards", "advantages", "lengths"):
            drawn = torch.cat([getattr(each, name) for _, each in seen])
            assert torch.equal(torch.tensor([getattr(row, name) for row in rows]).to(drawn.dtype), drawn)
        assert all(sum(row.kept) == 4 and len(row.kept) == 5 for row in rows)
        places = defaultdict(list)
        for row in rows:
            places[row.step].append(row.group)
        assert all(found == list(range(len(found))) for found in places.values())

    def test_without_a_reward_have_none(self, tmp_path):
        def reward(completions, **kwargs):
            return [None, *digits_reward(completions[1:])]

        recorded(tmp_path, reward=reward, **ONE)
        first = read_jsonl(tmp_path / GROUPS, Group)[0]
        assert first.rewards[0] is None and None not in first.rewards[1:] and first.kept[0] == 0
        row = read_jsonl(tmp_path / ROLLOUTS, Rollout)[0]
        assert (row.reward, row.advantage, row.kept, row.pivot, row.flipped) == (None, 0.0, False, False, None)


class TestRollouts:
    @pytest.mark.parametrize("recipe", [{}, UNEVEN])
    def test_are_of_the_first_and_the_last_step_that_draws(self, recipe, tmp_path):
        """Also where a generation is used in several steps, or an epoch ends one early."""
        _, seen = recorded(tmp_path, tables=RolloutTables(steps=2), **recipe)
        drawing = [step for step, _ in seen]
        assert [*dict.fromkeys(row.step for row in read_jsonl(tmp_path / ROLLOUTS, Rollout))] == [
            *dict.fromkeys((drawing[0], drawing[-1]))
        ]

    def test_are_of_the_first_the_middle_and_the_last_step(self, five):
        folder, trainer, _ = five
        found = by_group(read_jsonl(folder / ROLLOUTS, Rollout))
        assert [step for step, _ in found] == [1, 1, 3, 3, 5, 5]
        for (step, prompt), rows in found.items():
            assert [row.sample for row in rows] == [0, 1, 2, 3, 4] and sum(row.kept for row in rows) == 4
            batch = trainer.batches[step - 1]
            trained_on = zip(texts_of(trainer, batch, "prompt_ids"), texts_of(trainer, batch), strict=True)
            kept = [row.completion for row in rows if row.kept]
            assert sorted(text for given, text in trained_on if given == prompt) == sorted(kept)
            assert [row.reward for row in rows] == digits_reward([row.completion for row in rows])

    def test_mark_the_one_left_out_at_the_median(self, five):
        for rows in by_group(read_jsonl(five[0] / ROLLOUTS, Rollout)).values():
            (pivot,) = [row for row in rows if row.pivot]
            assert pivot.advantage == 0 and not pivot.kept
            assert pivot.reward == statistics.median(row.reward for row in rows)

    @pytest.mark.slow
    def test_mark_no_other_that_is_left_out(self, tmp_path):
        recorded(tmp_path, estimator="mean-std-plus1", max_steps=5)
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert any(not row.kept and row.advantage != 0 for row in rows)
        assert not any(row.pivot for row in rows if row.advantage != 0)

    def test_are_flipped_against_the_mean_of_as_many_more_as_are_asked_for(self, five):
        folder, _, scored = five
        rows = read_jsonl(folder / ROLLOUTS, Rollout)
        for (step, prompt), found in by_group(rows).items():
            _, *oracle = scored[step]  # the first call is that of training
            rewards = [
                value for prompts, values in oracle for at, value in zip(prompts, values, strict=True) if at == prompt
            ]
            assert len(rewards) == 7 and {row.oracle for row in found} == {statistics.mean(rewards)}
            assert all(len(prompts) <= 10 for prompts, _ in oracle)  # no more at a time than training's own
        assert {row.flipped for row in rows} == {True, False}

    def test_have_no_oracle_with_vllm_or_unless_it_is_asked_for(self, tmp_path):
        trainer, _ = recorded(tmp_path, tables=RolloutTables(), **ONE)
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert {row.flipped for row in rows} == {row.oracle for row in rows} == {None}
        trainer.use_vllm = True
        assert oracle_of(trainer, [{"prompt": "Sam"}], 32) == [None]

    def test_of_one_question_with_other_answers_have_oracles_of_their_own(self, monkeypatch):
        monkeypatch.setattr(rollout_files, "oracle_means", lambda _, rows, size: [float(row["answer"]) for row in rows])
        rows = [{"prompt": "2 + ?", "answer": answer} for answer in ("1", "2", "1")]
        assert oracle_of(SimpleNamespace(use_vllm=False), rows, 32) == [1.0, 2.0, 1.0]

    def test_of_groups_by_position_have_their_own_prompts_and_oracles(self, tmp_path):
        _, seen = recorded(tmp_path, Released, group_by="position", **ONE)
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert [row.prompt for row in rows[:10]] == [row["prompt"] for row in seen[0][1].inputs]
        oracles = {(row.prompt, row.oracle) for row in rows[:10]}
        assert len(oracles) == 2 and rows[4].prompt != rows[0].prompt

    def test_of_a_step_that_draws_several_times_are_of_the_first_time(self, watched):
        folder, _, seen = watched("several a step")
        rows = read_jsonl(folder / ROLLOUTS, Rollout)
        assert [step for step, _ in seen] == [1, 1, 2, 2, 3, 3]
        assert [row.step for row in rows] == [1] * 5 + [2] * 5 + [3] * 5
        assert [row.prompt for row in rows] == [row["prompt"] for _, drawn in seen[::2] for row in drawn.inputs]

    def test_are_none_unless_they_are_asked_for(self, tmp_path):
        recorded(tmp_path, tables=None, **ONE)
        assert (tmp_path / GROUPS).is_file() and not (tmp_path / ROLLOUTS).exists()


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
