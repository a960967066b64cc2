from types import SimpleNamespace

import pytest

from mcgrpo.data.prompts import as_prompt, render
from mcgrpo.data.toy.tokenizer import byte_tokenizer


def test_keywords_reach_the_chat_template():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{{ 'thinking' if enable_thinking else 'silent' }}"
    assert render([as_prompt("math", "?")], tokenizer, {"enable_thinking": False}) == ["silent"]


def test_a_tokenizer_without_template_is_named():
    with pytest.raises(ValueError, match="toy/words: this tokenizer has no chat template; use the prompt 'plain'"):
        render([as_prompt("math", "?")], SimpleNamespace(chat_template=None, name_or_path="toy/words"), {})


def test_a_template_that_does_not_know_a_keyword_renders_as_without_it():
    """Qwen3-4B-Instruct-2507 has no thinking to switch on, which config.yaml does as the release does."""
    prompts = [as_prompt("math", "1+1?")]
    assert render(prompts, byte_tokenizer(), {"enable_thinking": True}) == render(prompts, byte_tokenizer(), {})
