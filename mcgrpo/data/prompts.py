"""Prompt templates, and whether questions fit into a model's context. Standard library only.

`gsm8k` and `math` are the system prompts of the MC-GRPO release (the paper prints none); the user turn is the bare
question, rendered with the model's chat template. `chat` is the user turn alone; some templates add a system prompt of
their own. `plain` is the bare question without a template.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcgrpo.records import Example

Prompt = str | list[dict[str, str]]

_OPENING = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant "
    "first thinks about the reasoning process in the mind and then provides the user with the answer. "
)
_CLOSING = (
    "The reasoning process and answer are enclosed within <think> </think> and <answer> </answer> tags, respectively, "
    "i.e., <think> reasoning process here </think>\n<answer> answer here </answer>."
)
_BOXED = (
    "And the answer should be of the following format: 'Therefore, the final answer is: $\\boxed{{ANSWER}}$. I hope it "
    "is correct' (without quotes) where ANSWER is just the final number or expression that solves the problem. "
)

SYSTEM_PROMPTS: dict[str, str | None] = {
    "plain": None,
    "chat": None,
    "gsm8k": _OPENING + _CLOSING,
    "math": _OPENING + _BOXED + _CLOSING + " ",
}


def as_prompt(template: str, question: str) -> Prompt:
    """The question in the format of TRL: a string, or messages with the roles system and user."""
    if template == "plain":
        return question
    system = SYSTEM_PROMPTS[template]
    opening = [] if system is None else [{"role": "system", "content": system}]
    return [*opening, {"role": "user", "content": question}]


def check_context(examples: Sequence[Example], tokenizer: Any, config: Any, file: Path) -> None:
    """Refuse a question that a model's context does not hold.

    Args:
        examples: all of the file, in its order.
        tokenizer: of the model.
        config: of the model; one without `max_position_embeddings` takes any question.
        file: where they are.

    Raises:
        ValueError: naming the line, and both numbers of tokens.
    """
    context = getattr(config.get_text_config(), "max_position_embeddings", None) or math.inf
    for line, example in enumerate(examples, 1):
        if len(example.question.encode()) < context:  # a token has a byte or more
            continue
        if (tokens := len(tokenizer(example.question)["input_ids"])) >= context:
            long = f"{file}:{line}: {tokens} tokens of question {example.id!r}"
            raise ValueError(f"{long}, the model's context has {context}")


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
