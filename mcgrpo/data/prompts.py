"""Prompt templates, and prompts as a model gets them. Standard library only.

`gsm8k`, `math` and `module:attribute` (user-defined) have the system prompt of that task; the user turn is the bare
question, rendered with the model's chat template. `chat` is the user turn alone; some templates add a system prompt of
their own. `plain` is the bare question without a template.
"""

from collections.abc import Sequence
from typing import Any

from mcgrpo.grade.prompts import system_prompt

Prompt = str | list[dict[str, str]]


def as_prompt(template: str, question: str) -> Prompt:
    """The question in the format of TRL: a string, or messages with the roles system and user."""
    if template == "plain":
        return question
    system = system_prompt(template)
    opening = [] if system is None else [{"role": "system", "content": system}]
    return [*opening, {"role": "user", "content": question}]


def render(prompts: Sequence[Prompt], tokenizer: Any, chat_template_kwargs: dict[str, Any]) -> list[str]:
    """The exact text of each prompt that the model receives.

    Raises:
        ValueError: for messages if the tokenizer has no chat template.
    """
    if prompts and not isinstance(prompts[0], str) and tokenizer.chat_template is None:
        raise ValueError(f"{tokenizer.name_or_path}: this tokenizer has no chat template; use the prompt 'plain'")
    return [
        prompt
        if isinstance(prompt, str)
        else tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True, **chat_template_kwargs)
        for prompt in prompts
    ]


def token_ids(template: str, texts: list[str], tokenizer: Any) -> list[list[int]]:
    """The tokens of rendered prompts, as TRL makes them: a chat template has its special tokens in the text."""
    return tokenizer(texts, add_special_tokens=template == "plain")["input_ids"] if texts else []
