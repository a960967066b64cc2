"""Completions are drawn in one way: no sampling habits of the model's own, stop strings in either decoding."""

import pytest
import torch
from transformers import GenerationConfig

from mcgrpo.data.draw import draw
from mcgrpo.data.prompts import token_ids
from mcgrpo.data.toy.models import create

SHAPE = {"architecture": "qwen3", "hidden_size": 64, "layers": 1, "heads": 2, "intermediate_size": 64, "seed": 3}
SETTINGS = {"temperature": 1.0, "top_p": 1.0, "max_new_tokens": 24}


@pytest.fixture(scope="module")
def made():
    return create(SHAPE | {"tokenizer": "bytes"})


def drawn(made, decoding="sampled", count=6, **settings):
    model, tokenizer = made
    ids = token_ids("plain", [f"1+{number}?" for number in range(count)], tokenizer)
    return draw(model, tokenizer, ids, decoding, 0, SETTINGS | settings)


@pytest.mark.parametrize("decoding", ["greedy", "sampled"])
def test_a_models_own_sampling_habits_do_not_apply_and_stay_with_it(made, decoding):
    plain = drawn(made, decoding)
    own = GenerationConfig(repetition_penalty=9.0, top_k=2, eos_token_id=made[1].eos_token_id)
    before, made[0].generation_config = made[0].generation_config, own
    try:
        assert drawn(made, decoding) == plain
        assert made[0].generation_config is own
    finally:
        made[0].generation_config = before


@pytest.mark.parametrize("decoding", ["greedy", "sampled"])
def test_a_stop_string_ends_a_completion_and_is_its_end(made, decoding):
    whole = drawn(made, decoding)
    stop = next(text for text, _ in whole if len(text) > 6)[3:5]
    ended = drawn(made, decoding, stop=[stop, "never there"])
    assert any(stop in text for text, _ in whole) and {reason for _, reason in ended} <= {"stop", "length"}
    for (text, reason), (full, full_reason) in zip(ended, whole, strict=True):
        cut = full.find(stop)
        assert text == (full[: cut + len(stop)] if cut >= 0 else full)
        assert reason == ("stop" if cut >= 0 else full_reason)


def test_of_several_stop_strings_the_first_in_the_text_counts(made):
    text = next(text for text, _ in drawn(made) if len(text) > 8)
    early, late = text[2:4], text[5:7]
    (found,) = [each for each, _ in drawn(made, stop=[late, early]) if each and text.startswith(each)][:1]
    assert found == text[: min(text.find(each) + len(each) for each in (early, late))]


def test_a_stop_string_that_begins_in_the_prompt_is_none(made):
    model, tokenizer = made
    ids = token_ids("plain", ["1+1?"], tokenizer)
    ((plain, reason),) = draw(model, tokenizer, ids, "greedy", 0, SETTINGS)
    assert draw(model, tokenizer, ids, "greedy", 0, SETTINGS | {"stop": ["?" + plain[:1]]}) == [(plain, reason)]


def test_no_more_is_drawn_once_every_row_has_stopped(made):
    """And the padding behind a row that has stopped is none of its text."""
    steps = []
    hook = made[0].register_forward_hook(lambda *_: steps.append(None))
    try:
        ((text, _),) = drawn(made, "greedy", count=1)
        steps.clear()
        ((ended, reason),) = drawn(made, "greedy", count=1, stop=[text[:2]])
    finally:
        hook.remove()
    assert (ended, reason) == (text[:2], "stop") and len(steps) < SETTINGS["max_new_tokens"] / 2


def test_weights_that_are_trained_can_be_drawn_from_and_trained_on(made):
    model, tokenizer = made
    drawn(made)
    (ids,) = token_ids("plain", ["1+1?"], tokenizer)
    loss = model(torch.tensor([ids]), labels=torch.tensor([ids])).loss
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
