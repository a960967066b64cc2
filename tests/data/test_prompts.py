from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import LlamaConfig

from mcgrpo.data.prompts import as_prompt, check_context, render
from mcgrpo.data.toy.tokenizer import byte_tokenizer
from mcgrpo.records import Example


def test_keywords_reach_the_chat_template():
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{{ 'thinking' if enable_thinking else 'silent' }}"
    assert render([as_prompt("math", "?")], tokenizer, {"enable_thinking": False}) == ["silent"]


def test_a_tokenizer_without_template_is_named():
    with pytest.raises(ValueError, match="toy/words: this tokenizer has no chat template; use the prompt 'plain'"):
        render([as_prompt("math", "?")], SimpleNamespace(chat_template=None, name_or_path="toy/words"), {})


def test_a_question_longer_than_the_context_of_a_model_is_named_with_its_line():
    examples = [Example(str(length), "test", "q" * length, "1", "") for length in (1, 31, 32)]
    config = LlamaConfig(max_position_embeddings=32)
    check_context(examples[:2], byte_tokenizer(), config, Path("sums.jsonl"))
    with pytest.raises(ValueError, match=r"^sums\.jsonl:3: 32 tokens of question '32', the model's context has 32$"):
        check_context(examples, byte_tokenizer(), config, Path("sums.jsonl"))
