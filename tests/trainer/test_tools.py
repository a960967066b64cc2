"""Tools and environments: TRL's with a mean, and without the pivot with a median."""

from collections import Counter

import pytest
import torch
from completion_server import QUESTIONS, Environment, add, answers, chat_tokenizer, digit_reward
from datasets import Dataset
from tiny_training import SPEC, TRL, Ours, history, same_training
from transformers import AutoModelForCausalLM

from mcgrpo.data.toy.models import build

pytestmark = pytest.mark.law


class Scripted:
    """Mixed into a trainer: the answers of `completion_server.answers`, each by way of the tool."""

    def _generate_single_turn(self, prompt_ids, *args, **kwargs):
        asked = self.__dict__.setdefault("asked", Counter())
        replies = []
        for prompt in self.processing_class.batch_decode(prompt_ids):
            replies.append(answers(prompt, asked[prompt], calls=True) + "<|im_end|>")
            asked[prompt] += 1
        return self.processing_class(replies)["input_ids"], None


class TheirTools(Scripted, TRL):
    pass


class OurTools(Scripted, Ours):
    pass


CALLS = Counter()


class Counted(Environment):
    """Counts what is asked of all of them."""

    def reset(self, **row):
        CALLS["reset"] += 1
        return super().reset(**row)

    def get_reward(self):
        CALLS["reward"] += 1
        return super().get_reward()


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bytes") / "model"
    build(SPEC | {"tokenizer": "bytes"}, folder)
    return folder


@pytest.fixture
def trained(model_folder, tmp_path):
    def trained(kind, given, **settings):
        """A trainer after two optimizer steps of two prompts."""
        defaults = {
            "use_cpu": True,
            "bf16": False,
            "report_to": "none",
            "save_strategy": "no",
            "logging_steps": 1,
            "per_device_train_batch_size": 8,
            "num_generations": 4,
            "max_steps": 2,
            "max_completion_length": 400,
            "learning_rate": 1e-2,
        }
        trainer = kind(
            model=AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32),
            args=kind.config(output_dir=str(tmp_path), **defaults | settings),
            processing_class=chat_tokenizer(),
            **{"train_dataset": Dataset.from_list(QUESTIONS)} | given,
        )
        trainer.train()
        return trainer

    return trained


WITH = {
    "tools": {"tools": [add], "reward_funcs": digit_reward},
    "environment": {"environment_factory": Counted, "reward_funcs": None},
}


@pytest.mark.slow
@pytest.mark.parametrize("given", WITH.values(), ids=WITH)
def test_with_a_mean_they_are_trls_bit_for_bit(given, trained):
    theirs = trained(TheirTools, given)
    ours = trained(OurTools, given, estimator="mean-std", compact_updates=False)
    assert any(loss != 0 for loss in theirs.losses)
    assert "tool_mask" in theirs.batches[0]
    assert same_training(theirs, ours)
    assert history(ours, "tools/call_frequency") == [1.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("given", WITH.values(), ids=WITH)
def test_with_a_median_the_pivot_is_not_trained_on(given, trained):
    """The five answers to a question are 0 to 4; the reward of an answer is its number."""
    CALLS.clear()
    trainer = trained(OurTools, given, estimator="median", compact_updates=False)
    expected = [(0, -2.0), (1, -1.0), (3, 1.0), (4, 2.0)]
    for batch in trainer.batches:
        texts = trainer.processing_class.batch_decode(batch["completion_ids"])
        numbers = [int(text.split("It is ")[1][0]) for text in texts]
        assert sorted(zip(numbers, batch["advantages"].tolist(), strict=True)) == sorted(expected * 2)
        answered = batch["completion_ids"][batch["tool_mask"] == 0]
        assert "<tool_response>" in trainer.processing_class.decode(answered)
    if given is WITH["environment"]:  # each rollout drawn resets and scores its own once
        assert CALLS == {"reset": 2 * 10, "reward": 2 * 10}


class Twice(Environment):
    """Adds twice the number."""

    def add(self, number: int) -> int:
        return super().add(2 * number)


Twice.add.__doc__ = Environment.add.__doc__


def test_each_rollout_drawn_plays_in_the_environment_of_its_row(trained):
    rows = [row | {"environment": name} for row, name in zip(QUESTIONS, ("once", "twice"), strict=False)]
    environments = {"once": Environment, "twice": Twice}
    given = {"train_dataset": Dataset.from_list(rows), "environment_factory": environments, "reward_funcs": None}
    trainer = trained(OurTools, given, estimator="median", shuffle_dataset=False, max_steps=1, compact_updates=False)
    (batch,) = trainer.batches
    once = [-2.0, -1.0, 1.0, 2.0]
    assert sorted(batch["advantages"].tolist()) == sorted(once + [2 * advantage for advantage in once])


def test_lengths_are_of_what_the_model_drew(trained):
    trainer = trained(OurTools, WITH["tools"], estimator="median", max_steps=1)
    drawn = []
    trainer.observers.append(drawn.append)
    trainer._prepare_inputs([row for row in QUESTIONS[:2] for _ in range(4)])
    (batch,) = drawn
    assert batch.lengths.flatten().tolist() == [sum(mask) for mask in batch.rollouts.tool_mask]
    assert (batch.lengths.flatten() < torch.tensor(list(map(len, batch.rollouts.completion_ids)))).all()


class Seeing(Environment):
    """Answers with an image."""

    def reset(self, **row):
        super().reset(**row)
        return [{"type": "image", "image": "cat.png"}]


def test_an_image_of_an_environment_is_refused(trained):
    with pytest.raises(ValueError, match="an environment or a tool has returned an image"):
        trained(OurTools, {"environment_factory": Seeing, "reward_funcs": None})
