"""Completions are as long as a model's context leaves, and their record says so."""

import json

import pytest

from mcgrpo.data.toy.models import create
from mcgrpo.files import read_jsonl, write_jsonl
from mcgrpo.generate.complete import main
from mcgrpo.generate.lengths import capped
from mcgrpo.records import Completion, Example

ASKED = {"samples": 1, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 8000, "batch_size": 4}
LONGEST = (3, Example("aime-7", "test", "?", "1"), 541)


def test_one_number_for_a_model_and_a_benchmark_and_for_every_engine(tmp_path):
    fit = capped(ASKED | {"vllm_max_model_length": 10240}, 4096, LONGEST, tmp_path)
    assert fit == {**ASKED, "max_new_tokens": 3555, "asked_new_tokens": 8000, "vllm_max_model_length": 4096}
    assert capped(ASKED, 4096, LONGEST, tmp_path)["max_new_tokens"] == 3555
    assert capped(ASKED | {"vllm_max_model_length": 2048}, 4096, LONGEST, tmp_path)["max_new_tokens"] == 1507


def test_what_fits_is_drawn_as_asked(tmp_path):
    for context in (8541, 40960, None):
        assert capped(ASKED, context, LONGEST, tmp_path) == {**ASKED, "asked_new_tokens": 8000}
    assert capped(ASKED, 8540, LONGEST, tmp_path)["max_new_tokens"] == 7999


@pytest.mark.parametrize(
    ("settings", "context", "words"),
    [
        ({}, 541, "the model's context of 541 holds no completion beside it: take the question out of the data set"),
        ({"vllm_max_model_length": 500}, 4096, "vllm_max_model_length of 500 holds no completion beside it: raise it"),
    ],
)
def test_a_prompt_that_leaves_no_token_is_named(settings, context, words, tmp_path):
    with pytest.raises(ValueError, match=f"data.jsonl:3: the prompt of question 'aime-7' has 541 tokens, and {words}"):
        capped(ASKED | settings, context, LONGEST, tmp_path / "data.jsonl")


def test_the_command_stays_within_the_context_and_records_it(tmp_path, monkeypatch):
    """The longest rendered prompt counts, and transformers, which would go on without a word, stops there too."""
    shape = {"architecture": "llama", "hidden_size": 32, "heads": 1, "layers": 1, "tokenizer": "bytes"}
    model, tokenizer = create(shape)
    model.config.max_position_embeddings = 80
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "model")
    questions = {"train": "t" * 99, "short": "1+1?", "long": "q" * 20}
    rows = [Example(id, "train" if id == "train" else "test", text, "0") for id, text in questions.items()]
    write_jsonl(tmp_path / "data.jsonl", rows)
    options = {
        "model": tmp_path / "model", "data": tmp_path / "data.jsonl", "prompt": "chat", "seed": 0,
        "settings": json.dumps(ASKED), "output": tmp_path / "out.jsonl",
    }  # fmt: skip
    flags = [str(part) for key, value in options.items() for part in (f"--{key}", value)]
    monkeypatch.setattr("sys.argv", ["generate", *flags])
    main()
    message = [{"role": "user", "content": questions["long"]}]
    fit = 80 - len(tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False))
    made = read_jsonl(tmp_path / "out.jsonl", Completion)
    assert {(row.max_new_tokens, row.asked_new_tokens) for row in made} == {(fit, 8000)}
    assert 0 < fit < 60 and "length" in {row.finish_reason for row in made}
