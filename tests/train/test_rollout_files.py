"""What a training drew, as files: all groups as numbers, and some rollouts as text."""

import os
import shutil
import statistics
from collections import defaultdict
from functools import cache

import pytest
import torch
from datasets import Dataset
from tiny_training import Ours, Released, digits_reward, logged, same_training, texts_of, trainer_of
from transformers import TrainerCallback

from mcgrpo.files import read_jsonl
from mcgrpo.launch import environment
from mcgrpo.records import Group, Rollout
from mcgrpo.train import attempts
from mcgrpo.train.callbacks import Checkpoints
from mcgrpo.train.job import parse_tables
from mcgrpo.train.rollout_files import GROUPS, ROLLOUTS, RolloutFiles

TABLES = {"steps": 3, "prompts": 2}
RECIPES = {
    "default": {},
    "compact": {"beta": 0.0, "loss_type": "dapo"},
    "iterations": {"num_iterations": 2, "advantage_flip_rate": 0.3},
    "buffered": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 4},
    "several a step": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "steps_per_generation": 1},
}
ONE = {"max_steps": 1}
TEMPLATE = (
    "{% for each in messages %}{{ 1 if each.role == 'user' else 2 }}{{ each.content }}{% endfor %}"
    "{% if add_generation_prompt %}0{% endif %}"
)
"""A chat template of digits, which the tiny model's tokenizer knows."""
UNEVEN = {"gradient_accumulation_steps": 4, "steps_per_generation": 6, "num_iterations": 3, "max_steps": 6}
"""An epoch is one generation, used in 18 micro-batches: five optimizer steps, of which the last is short."""
SAVED = {"save_strategy": "steps", "save_steps": 1, "max_steps": 6}
several = pytest.mark.parametrize("recipe", RECIPES)


def telling_reward(completions, log_extra, log_metric, **kwargs):
    """Logs all that a reward function can log."""
    log_extra("length", [len(completion) for completion in completions])
    log_metric("digits", sum(map(str.isdigit, "".join(completions))))
    return digits_reward(completions)


class Copies(TrainerCallback):
    """Keeps the folder of a training as it is when the checkpoint of one of the steps is complete, as a kill would."""

    def __init__(self, folder, copies):
        self.folder, self.copies = folder, copies

    def on_save(self, args, state, control, **kwargs):
        if state.global_step in self.copies:
            shutil.copytree(self.folder, self.copies[state.global_step])


def recorded(folder, kind=Ours, tables=TABLES, checkpoint=None, reward=telling_reward, copies=None, **settings):
    """A trainer that has trained, and what its observers were called with: (step, drawn).

    Args:
        copies: step -> folder that gets a copy of the unfinished training once that step has its checkpoint.
    """
    folder.mkdir(exist_ok=True)
    trainer, seen = trainer_of(kind, folder / "checkpoints", reward, **settings), []
    trainer.add_callback(Checkpoints(attempts.Earlier()))
    trainer.add_callback(Copies(folder, copies or {}))
    RolloutFiles(trainer, folder, tables)
    trainer.observers.append(lambda drawn: seen.append((trainer.state.global_step + 1, drawn)))
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer, seen


def by_group(rows):
    """Rows of rollouts.jsonl by step and prompt, in order."""
    found = defaultdict(list)
    for row in rows:
        found[row.step, row.prompt].append(row)
    return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Recipe -> folder of a training of three steps, its trainer, and what its observers saw."""

    @cache
    def watched(recipe):
        folder = tmp_path_factory.mktemp("watched")
        return folder, *recorded(folder, **RECIPES[recipe])

    return watched


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """A training of five steps: its folder and its trainer."""
    folder = tmp_path_factory.mktemp("five")
    return folder, recorded(folder, max_steps=5)[0]


class TestTraining:
    @pytest.mark.slow
    @several
    def test_ends_the_same_to_the_bit_as_without_files(self, recipe, watched, tmp_path):
        _, trainer, _ = watched(recipe)
        plain = trainer_of(Ours, tmp_path, telling_reward, **RECIPES[recipe])
        plain.train()
        assert same_training(plain, trainer)
        assert logged(plain) == logged(trainer)
        assert plain._logs == trainer._logs and plain._logs["extra"]["length"]


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
        assert (row.reward, row.advantage, row.kept, row.pivot) == (None, 0.0, False, False)


class TestRollouts:
    @pytest.mark.parametrize("recipe", [{}, UNEVEN])
    def test_are_of_the_first_and_the_last_step_that_draws(self, recipe, tmp_path):
        """Also where a generation is used in several steps, or an epoch ends one early."""
        _, seen = recorded(tmp_path, tables={"steps": 2, "prompts": 2}, **recipe)
        drawing = [step for step, _ in seen]
        assert [*dict.fromkeys(row.step for row in read_jsonl(tmp_path / ROLLOUTS, Rollout))] == [
            *dict.fromkeys((drawing[0], drawing[-1]))
        ]

    def test_are_of_the_first_the_middle_and_the_last_step(self, five):
        folder, trainer = five
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

    def test_of_groups_by_position_have_their_own_prompts(self, tmp_path):
        _, seen = recorded(tmp_path, Released, group_by="position", **ONE)
        rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
        assert [row.prompt for row in rows[:10]] == [row["prompt"] for row in seen[0][1].inputs]
        assert len({row.prompt for row in rows[:10]}) == 2 and rows[4].prompt != rows[0].prompt


class OfChats(Ours):
    def __init__(self, *args, processing_class, **kwargs):
        processing_class.chat_template = TEMPLATE
        super().__init__(*args, processing_class=processing_class, **kwargs)


def test_the_prompt_of_a_conversation_is_the_text_of_its_chat_template(tmp_path):
    first, second = {"role": "user", "content": "2 + 2"}, {"role": "user", "content": "3"}
    recorded(
        tmp_path,
        OfChats,
        {"steps": 1, "prompts": 2},
        reward=lambda completions, **_: digits_reward([each[0]["content"] for each in completions]),
        data=Dataset.from_dict({"prompt": [[first], [{"role": "system", "content": "9"}, second]]}),
        **ONE,
    )
    rows = read_jsonl(tmp_path / ROLLOUTS, Rollout)
    assert len(rows) == 10 and {row.prompt for row in rows} == {"12 + 20", "29130"}


@pytest.mark.slow
@several
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
    assert parse_tables(os.environ["MCGRPO_ROLLOUT_TABLES"]) == {"steps": 5, "prompts": 2}
    with pytest.raises(ValueError, match="no key 'step'"):
        parse_tables('{"step": 5}')
    environment.prepare({})
    assert "MCGRPO_ROLLOUT_TABLES" not in os.environ and parse_tables("") is None
