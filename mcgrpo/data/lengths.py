"""Prompts of a data set in tokens, and those that are too long for a model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcgrpo.data.prompts import as_prompt, render, token_ids
from mcgrpo.files import read_jsonl
from mcgrpo.records import Example
from mcgrpo.study.context import context_of

Measured = tuple[int, Example, int]
"""A line of a data file, its example, and the tokens of its prompt."""


def context_here(folder: Path, tokenizer: Any) -> int | None:
    """The context of a model in a folder, in tokens; see `mcgrpo.study.context`."""
    from transformers import AutoConfig

    return context_of(AutoConfig.from_pretrained(folder).get_text_config().to_dict(), tokenizer.model_max_length)


def measured(
    file: Path, split: str, template: str, tokenizer: Any, chat_template_kwargs: dict[str, Any]
) -> Iterator[Measured]:
    """Every example of a split with its line and the length of its prompt, rendered as the model gets it.

    Raises:
        ValueError: for a split without examples.
    """
    chosen = [(line, each) for line, each in enumerate(read_jsonl(file, Example), 1) if each.split == split]
    if not chosen:
        raise ValueError(f"{file}: no example of split {split!r}")
    texts = render([as_prompt(template, each.question) for _, each in chosen], tokenizer, chat_template_kwargs)
    for (line, example), ids in zip(chosen, token_ids(template, texts, tokenizer), strict=True):
        yield line, example, len(ids)


def named(file: Path, longest: Measured) -> str:
    """What an error says of a prompt that is too long."""
    line, example, tokens = longest
    return f"{file}:{line}: the prompt of question {example.id!r} has {tokens} tokens"
