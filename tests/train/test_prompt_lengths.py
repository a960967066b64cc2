"""What does not fit a model's context is not trained on: refused by its line, or left out and counted."""

import json

import pytest
from training_jobs import changed, job, outcome

from mcgrpo.data.lengths import measured
from mcgrpo.data.toy.tokenizer import word_tokenizer
from mcgrpo.train.job import run_job
from mcgrpo.train.lengths import fitting


@pytest.fixture
def lengths(inputs):
    return [tokens for _, _, tokens in measured(inputs / "data.jsonl", "train", "plain", word_tokenizer(), {})]


@pytest.fixture
def small(inputs, tmp_path):
    """A copy of the model folder with another context."""

    def small(context):
        for file in (inputs / "model").iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        config = json.loads((tmp_path / "config.json").read_text()) | {"max_position_embeddings": context}
        (tmp_path / "config.json").write_text(json.dumps(config))
        return tmp_path

    return small


def test_the_first_of_the_longest_prompts_is_named_with_the_remedy(inputs, small, lengths):
    data, longest = inputs / "data.jsonl", max(lengths)
    line, example, _ = next(row for row in measured(data, "train", "plain", word_tokenizer(), {}) if row[2] == longest)
    context = longest + 7
    with pytest.raises(ValueError) as caught:
        fitting(changed(), small(context), data)
    assert str(caught.value) == (
        f"{data}:{line}: the prompt of question {example.id!r} has {longest} tokens, and max_completion_length=8 more "
        f"do not fit the model's context of {context}: leave longer prompts out (training.max_prompt_length: "
        f"{context - 8}), or lower max_completion_length"
    )
    assert len(fitting(changed(), small(longest + 8), data)[0]) == len(lengths)


def test_longer_prompts_are_left_out_and_counted(inputs, small, lengths):
    most = max(lengths) - 1
    kept, left_out = fitting(changed(max_prompt_length=most), small(most + 8), inputs / "data.jsonl")
    assert left_out == lengths.count(max(lengths)) > 0
    assert len(kept) + left_out == len(lengths)


def test_vllms_length_counts_where_the_study_uses_vllm(inputs, lengths):
    run = changed(use_vllm=True, vllm_max_model_length=max(lengths) + 7)
    with pytest.raises(ValueError, match="do not fit vllm_max_model_length of"):
        fitting(run, inputs / "model", inputs / "data.jsonl")


def test_a_run_says_how_many_it_left_out_and_trains_on_the_others(inputs, tmp_path, lengths):
    most = max(lengths) - 1
    short = job(inputs, tmp_path, changed(max_prompt_length=most, max_steps=1))
    run_job(short)
    data = outcome(tmp_path / "run")["data"]
    assert data["left_out"] == lengths.count(max(lengths))
    assert data["rows"] == len(lengths) - data["left_out"]


def test_nothing_is_loaded_for_prompts_that_are_all_too_long(inputs, tmp_path):
    with pytest.raises(ValueError, match="no prompt of split 'train' has at most max_prompt_length=1 tokens"):
        run_job(job(inputs, tmp_path, changed(max_prompt_length=1)))


def test_too_few_prompts_once_long_ones_are_left_out_are_no_training(inputs, tmp_path, lengths):
    few = changed(max_prompt_length=min(lengths), per_device_train_batch_size=2 * len(lengths))
    left = lengths.count(min(lengths))
    assert left < len(lengths)
    with pytest.raises(ValueError, match=f"there are {left} to train on"):
        run_job(job(inputs, tmp_path, few))
