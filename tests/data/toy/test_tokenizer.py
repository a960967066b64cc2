import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from mcgrpo.data.toy import task
from mcgrpo.data.toy.demonstrator import demonstrate
from mcgrpo.data.toy.tokenizer import TOKENIZERS, byte_tokenizer, word_tokenizer

WORD, BYTES = word_tokenizer(), byte_tokenizer()


@pytest.mark.parametrize("kind", task.KINDS)
def test_words_hold_the_whole_task(kind):
    rng = random.Random(0)
    for problem in task.problems(kind, "warm", 1000, 0):
        for text in (problem.question, demonstrate(problem, rng, (0.0, 0.8))):
            ids = WORD(text)["input_ids"]
            assert WORD.unk_token_id not in ids
            assert WORD.decode(ids) == text


def test_words_outside_the_task_are_unknown():
    assert WORD("Sam has seven cards")["input_ids"].count(WORD.unk_token_id) == 1


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_bytes_bring_any_text_back(text):
    ids = BYTES(text)["input_ids"]
    assert len(ids) == len(text.encode())
    assert BYTES.decode(ids) == text


@pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)
def test_saved_tokenizers_come_back_the_same(make, tmp_path):
    before = make()
    before.save_pretrained(tmp_path)
    after = AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(after, PreTrainedTokenizerFast)
    assert after.get_vocab() == before.get_vocab()
    assert after.chat_template == before.chat_template
    assert (after.eos_token, after.pad_token, after.padding_side) == (before.eos_token, before.pad_token, "left")
    text = "Sam has 5 cards. Sam sells 4 and gets 15 more. How many cards?"
    assert after(text)["input_ids"] == before(text)["input_ids"]
    assert after.decode(after(text)["input_ids"]) == text
