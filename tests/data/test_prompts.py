import hashlib
from types import SimpleNamespace

import pytest

from mcgrpo.data.prompts import SYSTEM_PROMPTS, as_prompt, render, sha256
from mcgrpo.data.toy.tokenizer import byte_tokenizer


def test_prompts_ask_for_what_graders_read():
    assert "<answer> answer here </answer>" in SYSTEM_PROMPTS["gsm8k"]
    assert "\\boxed" not in SYSTEM_PROMPTS["gsm8k"]
    assert "\\boxed" in SYSTEM_PROMPTS["math"]
    assert "\\boxed{{ANSWER}}" in SYSTEM_PROMPTS["math"]  # both braces stand in the release


def test_keywords_reach_the_chat_template():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{{ 'thinking' if enable_thinking else 'silent' }}"
    assert render([as_prompt("math", "?")], tokenizer, {"enable_thinking": False}) == ["silent"]


def test_a_tokenizer_without_template_is_named():
    with pytest.raises(ValueError, match="toy/words: this tokenizer has no chat template; use the prompt 'plain'"):
        render([as_prompt("math", "?")], SimpleNamespace(chat_template=None, name_or_path="toy/words"), {})


def test_the_hash_is_that_of_the_text():
    assert sha256("é") == hashlib.sha256(b"\xc3\xa9").hexdigest()
    assert sha256("\ud800") != sha256("\ud801")
